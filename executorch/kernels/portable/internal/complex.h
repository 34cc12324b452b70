/// Operations on complex tensors (ComplexHalf, ComplexFloat, ComplexDouble), which the operators of
/// the real types hand on. Operands may have any layout, broadcast, and be real where another one
/// is complex; results convert to the type of `out`.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/reduce.h>
#include <executorch/kernels/portable/internal/shape.h>

namespace torch::executor::native::internal {

enum class ComplexOp { Add, Multiply, Divide };

/// out = a op b, or a + alpha * b.
Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Tensor& b, double alpha, Tensor& out);
Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Scalar& b, double alpha, Tensor& out);
/// out = |self|, of the real dtype of its parts.
Tensor& complex_abs(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
Tensor& complex_neg(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
/// out = the sums that `r` plans, divided by `divisor`. Sums are kept in double.
void complex_sum(const Reduction& r, double divisor, Tensor& out);

}  // namespace torch::executor::native::internal
