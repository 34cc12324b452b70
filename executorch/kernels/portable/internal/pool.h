/// Pooling for callers that want less than the operator computes.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

namespace torch::executor::native::internal {

/// The values of max_pool2d_with_indices. False where only the operator itself computes them, or
/// with the context's failure set where arguments are wrong.
[[nodiscard]] bool max_pool2d_values(KernelRuntimeContext& ctx, const Tensor& self,
                                     IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                     Tensor& out);

}  // namespace torch::executor::native::internal
