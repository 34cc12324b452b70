/// Convolutions over planes by Winograd's F(2x2, 3x3); conv_winograd.h has the transforms.
#pragma once

#include <executorch/cpu/nn/plane_conv.h>

namespace executorch::cpu {

/// Whether Winograd's algorithm applies and takes fewer cycles than a product with every tap: 3 x 3
/// taps, stride 1, and enough channels.
bool suits_winograd(const PlaneConv& conv);

/// Computes the convolution. Returns false if scratch memory is refused.
[[nodiscard]] bool run_winograd(const PlaneConv& conv);

}  // namespace executorch::cpu
