/// Softmax and its logarithm along one dim, in float:
///   softmax(x)_i = exp(x_i - m) / s,  log_softmax(x)_i = x_i - m - log(s)
/// with m = max(x), s = sum_i exp(x_i - m).
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// `outer` x `inner` lines of n elements: element i of line (o, c) lies at
/// o * n * inner + i * inner + c, in x and in y; y may be x. A line with a NaN is NaN. Lines are
/// split over threads; results do not depend on their number. Sizes >= 0. run() returns false if
/// memory is refused or a product of sizes exceeds int64; some lines of y may be written by then.
struct Softmax {
  Type type = Type::F32;
  bool log = false;
  int64_t outer = 1, n = 1, inner = 1;
  const void* x = nullptr;
  void* y = nullptr;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
