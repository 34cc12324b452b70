#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Runs a transposed convolution with strides without multiplying by the zeros between them. The
/// outputs o with the same remainder r of (o / stride) meet every stride-th tap only, and input
/// positions side by side: they are a convolution of step 1. One after the other is computed into
/// a plane of its own and spread over `out`.
/// False, and nothing done: `c` is not transposed, has no strides or a residual, is not laid out in
/// planes, or some outputs meet no tap at all.
bool run_in_phases(const Conv<float>& c);

}  // namespace executorch::cpu
