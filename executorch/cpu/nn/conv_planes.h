/// Convolutions over planes: rows of pixels contiguous, float.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether `c` is one for products over planes: pixels of input and output contiguous along width,
/// weights contiguous per output channel, two dims, some channels.
bool fits_planes(const Conv<float>& c);

/// Computes image b of group g of a convolution that fits. Weights are read where they lie.
///   1 x 1 taps        the image itself is the matrix
///   3 x 3, step 1     Winograd's F(2x2, 3x3), where its fewer products repay transforming weights
///   rows of pixels    each tap's pixels are a stretch of a row of the padded image, its columns
///   that fill vectors sorted by their remainder modulo the stride: nothing is gathered
///   else              patches gathered to panels
/// False if `scratch` was refused.
[[nodiscard]] bool run_planes(const Conv<float>& c, int64_t b, int64_t g, Scratch& scratch);

}  // namespace executorch::cpu
