/// Mixtures of experts: each token goes through the few feed-forward layers that a router chooses.
///
///   scores = x gate_weight^T                 [tokens, num_experts]
///   out[t] = sum over the chosen e of p[t,e] * w2_e (silu(w1_e x[t]) * (w3_e x[t]))
///
///   x            Float [tokens, dim];  out the same, may be x
///   gate_weight  Float [num_experts, dim];  expert_bias Float [num_experts], or empty
///   packed_w13   Byte [num_experts, bytes]: w1 and below it w3, [2 * hidden_dim, dim], of each
///   packed_w2    Byte [num_experts, bytes]: w2, [dim, hidden_dim], of each
///                (packed_linear.h; weight_nbit 4 or 8, a scale for each group_size of a row)
///
/// score_func "sigmoid": those num_activated_experts with the largest sigmoid(score) + bias; p are
/// the sigmoids, divided by their sum, times route_scale. "softmax", without a bias: those with the
/// largest scores; p is the softmax over their scores. Of equal experts the first is chosen; NaNs
/// come last. Weights become floats while they are multiplied, a panel at a time.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>

namespace torch::executor::native {

using executorch::aten::Tensor;

Tensor& quantized_moe_ffn_out(KernelRuntimeContext& ctx, const Tensor& x, const Tensor& gate_weight,
                              const Tensor& expert_bias, const Tensor& packed_w13,
                              const Tensor& packed_w2, int64_t num_activated_experts,
                              int64_t num_experts, int64_t hidden_dim, int64_t dim,
                              int64_t group_size, int64_t weight_nbit,
                              executorch::aten::string_view score_func, double route_scale,
                              Tensor& out);

}  // namespace torch::executor::native
