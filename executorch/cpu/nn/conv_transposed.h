#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether run_in_phases() can compute `c`: a transposed convolution with strides > 1, laid out in
/// planes, without a residual, in which every output has at least one tap.
bool has_phases(const Conv<float>& c);

/// Computes such a convolution without multiplying by the zeros between strides. All outputs with
/// the same remainder modulo the stride (a phase) use only every stride-th tap and read
/// neighbouring input positions, so each phase is a convolution of stride 1. Each phase is computed
/// into a plane of its own and then spread over `out`. Returns false if scratch memory is refused.
[[nodiscard]] bool run_in_phases(const Conv<float>& c, Scratch& scratch);

}  // namespace executorch::cpu
