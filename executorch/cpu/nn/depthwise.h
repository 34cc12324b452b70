/// Kernels of depthwise convolutions: one channel per group.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

constexpr int64_t kDepthwiseTaps = 128;

template <class T>
struct DepthwiseKernels {
  /// Computes planes [begin, end). Plane b * groups + g consists of all pixels of channel g of
  /// image b. Input and output must be contiguous along width. `buffer` has plane_floats() floats.
  void (*planes)(const Conv<T>&, int64_t begin, int64_t end, float* buffer);
  Size (*plane_floats)(const Conv<T>&);
  /// Computes output row `row` (of depth * height rows) of image b in all channels, which are
  /// contiguous. Takes weights[tap * groups + g], and biases[g] or null. There may be at most
  /// kDepthwiseTaps taps.
  void (*pixels)(const Conv<T>&, int64_t b, int64_t row, const float* weights, const float* biases);
};

/// The kernels for T, any type of ET_STORED_FLOATS.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

}  // namespace executorch::cpu
