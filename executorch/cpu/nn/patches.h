/// Gathers patches of an image to panels of a matrix (im2col), by vectors.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// The rows of the matrix of patches: row channel * channel_rows + tap * tap_rows holds, for each
/// output pixel, the input pixel that this tap of this channel reads.
struct PatchRows {
  const ConvAxis* axis;
  const float* image;  // channel 0
  int64_t channel_stride;
  int64_t n_channels;
  int64_t channel_rows, tap_rows;
};

/// Writes rows [p0, p0 + np) of pixels [j0, j0 + nj) to to[p * ld + j], and zeros for nj <= j < ld.
/// ld must be a multiple of a vector's lanes. The dilations of axes may be negative; the
/// convolution is not transposed.
using GatherPatches = void (*)(const PatchRows&, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                               float* to, int64_t ld);
GatherPatches gather_patches();

}  // namespace executorch::cpu
