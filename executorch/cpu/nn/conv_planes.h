/// Float convolutions of images that lie as planes (NCHW): the pixels of a row are contiguous.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether run_planes() can compute `c`: a convolution with more than a few output channels,
/// with input and output contiguous along width and with the weights of an output channel
/// contiguous.
bool fits_planes(const Conv<float>& c);

/// Computes group g of image b of a convolution for which fits_planes() is true. Weights are read
/// where they lie. The algorithm depends on the kernel:
///   1 x 1 taps        the image itself is the matrix
///   3 x 3, stride 1   Winograd's F(2x2, 3x3), if its fewer products repay transforming the weights
///   rows of pixels    the columns of the padded image are sorted by their remainder modulo the
///   that fill vectors stride, so that the pixels that a tap reads are contiguous in each row
///   else              patches are gathered to panels
/// Returns false if scratch memory is refused.
[[nodiscard]] bool run_planes(const Conv<float>& c, int64_t b, int64_t g, Scratch& scratch);

}  // namespace executorch::cpu
