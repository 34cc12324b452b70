/// out = in, whatever it is: where a program is divided into parts, a value passes through it.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

namespace torch::executor::native {

using executorch::aten::Tensor;

Tensor& fallback_out(KernelRuntimeContext& ctx, const Tensor& in, Tensor& out);

}  // namespace torch::executor::native
