/// A chain of convolutions, computed together in bands of rows.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// steps[n - 1](... steps[0](input)): each step reads the result of the one before it, which is
/// contiguous, [channels, height, width], and is not kept. A thread computes a band of rows of the
/// last result through all steps, so that the intermediate results stay in its L2 cache. Networks
/// that widen their channels by six thus never write the wide images to memory. Intermediate rows
/// that two bands need are computed twice.
struct ConvChain {
  static constexpr int kMost = 3;
  /// Convolutions in two dims, not transposed, with contiguous rows and extents >= 1. The addresses
  /// and strides of intermediate results are not read. Only the last step may have a residual.
  Conv<float> steps[kMost];
  int n = 0;

  /// Whether bands are faster than running the steps one by one: if the intermediate results would
  /// not stay in the cache, and few rows are computed twice.
  bool pays() const;
  /// Returns false in the same cases as Conv::run(). Results do not depend on the number of
  /// threads.
  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
