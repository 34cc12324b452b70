#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether `c` is a transposed convolution with strides that can be computed without multiplying by
/// the zeros between them: laid out in planes, without a residual, every output meets some tap.
bool has_phases(const Conv<float>& c);

/// Computes such a convolution. The outputs o with the same remainder r of (o / stride) meet every
/// stride-th tap only, and input positions side by side: they are a convolution of step 1. One
/// after the other is computed into a plane of its own and spread over `out`.
/// False if `scratch` was refused.
[[nodiscard]] bool run_in_phases(const Conv<float>& c, Scratch& scratch);

}  // namespace executorch::cpu
