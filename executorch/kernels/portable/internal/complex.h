/// Operations on complex tensors (ComplexHalf, ComplexFloat, ComplexDouble), to which the operators
/// for real types delegate. Operands may have any layout, broadcast, and be real if another one is
/// complex. Results are converted to the type of `out`.
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
/// out = |self|, whose dtype is that of the parts of self.
Tensor& complex_abs(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
Tensor& complex_neg(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
/// out = the sums that `r` plans, divided by `divisor`. Sums are kept in double.
void complex_sum(const Reduction& r, double divisor, Tensor& out);

}  // namespace torch::executor::native::internal
