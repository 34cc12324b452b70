/// Patches of an image as panels of a matrix, gathered by vectors.
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
/// multiple of a vector's lanes). The axes' dilation may be negative; none is transposed.
using GatherPatches = void (*)(const PatchRows&, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                               float* to, int64_t ld);
GatherPatches gather_patches();

}  // namespace executorch::cpu
