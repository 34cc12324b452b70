/// Arithmetic of complex tensors, which the operators of the real types hand on. Operands and out
/// have one complex dtype, ComplexFloat or ComplexDouble, in any layout; operands broadcast.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/shape.h>

namespace torch::executor::native::internal {

constexpr bool is_complex(ScalarType t) {
  return t == ScalarType::ComplexHalf || t == ScalarType::ComplexFloat ||
         t == ScalarType::ComplexDouble;
}

enum class ComplexOp { Add, Multiply, Divide };

/// out = a op b, or a + alpha * b.
Tensor& complex_arithmetic(KernelRuntimeContext& ctx, const char* op, ComplexOp operation,
                           const Tensor& a, const Tensor& b, double alpha, Tensor& out);
/// out = |self|, of the real dtype of its parts.
Tensor& complex_abs(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);
Tensor& complex_neg(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out);

}  // namespace torch::executor::native::internal
