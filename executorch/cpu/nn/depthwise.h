/// Convolutions of one channel per group.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

constexpr int64_t kDepthwiseTaps = 128;

template <class T>
struct DepthwiseKernels {
  /// Planes [begin, end), plane b * groups + g being all pixels of channel g of image b; pixels of
  /// input and output are contiguous along width. `buffer` holds plane_floats().
  void (*planes)(const Conv<T>&, int64_t begin, int64_t end, float* buffer);
  Size (*plane_floats)(const Conv<T>&);
  /// Output row `row` (depth and height) of image b in all channels, which are contiguous.
  /// weights[tap * groups + g], biases[g] or null; at most kDepthwiseTaps taps.
  void (*pixels)(const Conv<T>&, int64_t b, int64_t row, const float* weights, const float* biases);
};

/// Of every stored floating type.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

}  // namespace executorch::cpu
