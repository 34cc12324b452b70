/// myop::custom_linear, written once for the runtime; PyTorch gets it through a wrapper.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <optional>

/// out[.., n] = sum_k input[.., k] * weight[n, k] + bias[n]; float32, contiguous.
///   weight [n, k]   input [.., k]   bias [n] or none   out [.., n]
/// Fails the context with InvalidArgument for other types or shapes.
executorch::aten::Tensor& custom_linear_out(executorch::runtime::KernelRuntimeContext& ctx,
                                            const executorch::aten::Tensor& weight,
                                            const executorch::aten::Tensor& input,
                                            const std::optional<executorch::aten::Tensor>& bias,
                                            executorch::aten::Tensor& out);
