/// Vector code of convolutions, chosen at run time.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Rows of a matrix of patches: row channel * channel_rows + tap * tap_rows holds what each output
/// pixel meets with that tap of that channel.
struct PatchRows {
  const ConvAxis* axis;
  const float* image;  // channel 0
  int64_t channel_stride;
  int64_t n_channels;
  int64_t channel_rows, tap_rows;
};

/// Writes rows [p0, p0 + np) of pixels [j0, j0 + nj) to to[p * ld + j], zeros for nj <= j < ld (a
/// multiple of a vector's lanes). Not for transposed convolutions.
using GatherPatches = void (*)(const PatchRows&, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                               float* to, int64_t ld);
GatherPatches gather_patches();

constexpr int64_t kDepthwiseTaps = 128;

template <class T>
struct DepthwiseKernels {
  /// All pixels of channel g of image b; pixels of input and output are contiguous along width.
  void (*plane)(const Conv<T>&, int64_t b, int64_t g);
  /// Output row `row` (depth and height) of image b in all channels, which are contiguous.
  /// weights[tap * groups + g], biases[g] or null; at most kDepthwiseTaps taps.
  void (*pixels)(const Conv<T>&, int64_t b, int64_t row, const float* weights, const float* biases);
};

/// F32, F16, BF16.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

}  // namespace executorch::cpu
