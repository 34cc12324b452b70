/// y = H x / sqrt(2^m) for each row x of the last dim, which has n = 2^m or 28 * 2^m numbers. H is
/// the Hadamard matrix of order 2^m in natural order (Sylvester), or the Kronecker product of one
/// of order 28, applied from the right, with it; that is what the scale leaves out.
/// Types: Float, Half, BFloat16, computed in Float. Cost: n log n sums a row.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

namespace torch::executor::native {

using executorch::aten::Tensor;

Tensor& fast_hadamard_transform_out(RuntimeContext& ctx, const Tensor& mat, Tensor& out);

}  // namespace torch::executor::native
