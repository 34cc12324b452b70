#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether run_transposed() can compute `c`: a transposed convolution without a residual.
bool fits_transposed(const Conv<float>& c);

/// Computes such a convolution as one matrix product, of the weights of all taps by the image,
///   columns[(o, t), x] = sum over i of weight[o, i, t] * input[i, x],
/// whose elements are then added to the outputs that tap t of input x contributes to. No product
/// has a factor from between strides or from the padding. Work is in proportion to the number of
/// columns, taps times inputs; scratch memory to those of some rows of outputs and, where pixels of
/// the image or of the result are not contiguous, to that. Returns false if memory is refused.
[[nodiscard]] bool run_transposed(const Conv<float>& c, Scratch& scratch);

/// The least number of floats of `columns` that run_transposed() needs at once.
Size least_columns(const ConvAxis* axis);

}  // namespace executorch::cpu
