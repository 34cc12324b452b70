/// Max pooling for callers that do not need the indices.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

namespace torch::executor::native::internal {

/// Computes the values of max_pool2d_with_indices without the indices. Returns false if only the
/// operator itself can compute them; if arguments are wrong, also fails the context.
[[nodiscard]] bool max_pool2d_values(KernelRuntimeContext& ctx, const Tensor& self,
                                     IntArrayRef kernel_size, IntArrayRef stride,
                                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                                     Tensor& out);

}  // namespace torch::executor::native::internal
