/// What this machine can do at most, measured with all threads of the default pool.
#pragma once

namespace executorch::cpu {

struct MachineLimits {
  double flops;             // float multiply-adds, two operations each, per second
  double int8;              // the same of bytes, added up in 32 bits
  double bytes_per_second;  // read from memory
  double median_read;       // the same, of the median reading: what memory gives by and large
};

/// Measured on first use, in half a second to a second.
const MachineLimits& machine_limits();

}  // namespace executorch::cpu
