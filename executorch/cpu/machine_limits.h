/// The highest rates of computing and reading that this machine reaches, measured with all threads
/// of the default pool.
#pragma once

namespace executorch::cpu {

struct MachineLimits {
  double flops;             // float multiply-adds, two operations each, per second
  double int8;              // int8 multiply-adds into 32-bit sums, counted likewise
  double bytes_per_second;  // read from memory
  double median_read;       // bytes per second of the median measurement, not of the best one
};

/// Measured on first use, in half a second to a second.
const MachineLimits& machine_limits();

}  // namespace executorch::cpu
