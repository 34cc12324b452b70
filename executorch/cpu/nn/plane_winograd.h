/// Convolutions over planes by Winograd's F(2x2, 3x3); conv_winograd.h has the transforms.
#pragma once

#include <executorch/cpu/nn/plane_conv.h>

namespace executorch::cpu {

/// Whether it takes fewer cycles than a product with every tap: 3 x 3 taps, step 1, some channels.
bool suits_winograd(const PlaneConv& conv);

/// False if the memory was refused.
[[nodiscard]] bool run_winograd(const PlaneConv& conv);

}  // namespace executorch::cpu
