/// Numbers that operators take as arguments, and the element types they become.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

namespace torch::executor::native::internal {

/// Whether `value` can become an element of `type` by eager PyTorch's rule: infinities and NaN are
/// floating values, a finite number must lie in the type's range, the fraction of a number that
/// becomes an integer is dropped, a negative integer -n becomes unsigned where n would, and
/// everything becomes Bool, or a type that kernels do not compute in.
bool fits(const Scalar& value, ScalarType type);

/// The same; fails the kernel with a message that names the argument where it does not fit.
[[nodiscard]] bool require_fits(KernelRuntimeContext& ctx, const char* op, const char* argument,
                                const Scalar& value, ScalarType type);

}  // namespace torch::executor::native::internal
