/// Convolutions one after the other, computed in bands of rows.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// steps[n - 1](... steps[0](input)): each step reads what the one before writes, [channels,
/// height, width] contiguous, which is not kept. A thread computes a band of rows of the last
/// result through all steps, so that what lies between them stays in its second-level cache: what a
/// network widens by six never goes to memory. Rows that two bands need are computed twice.
struct ConvChain {
  static constexpr int kMost = 3;
  /// Two dims, not transposed, rows contiguous, extents >= 1. What lies between: its address and
  /// strides are not read. Only the last step has a residual.
  Conv<float> steps[kMost];
  int n = 0;

  /// Whether bands are faster than step after step: what lies between would not stay in the cache,
  /// and few rows are computed twice.
  bool pays() const;
  /// False: as Conv::run(). Results do not depend on the number of threads.
  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
