/// Attention over caches of keys and values.
///
///   out[b,t,h] = sum_j p[b,h,t,j] v[b,j,h/g],   g = query heads / heads of keys and values
///   p = softmax over j of (scale * dot(q[b,t,h], k[b,j,h/g]) + mask[t,j])
///
///   q     [batch, tokens, heads, dim]; token t stands at position start_pos + t
///   k, v  [batch, capacity, kv_heads, dim]; kv_heads divides heads
///   mask  [tokens, keys]: Float, the type of q, or Bool with true for what is visible;
///         keys <= capacity are those read. Without a mask they are start_pos + tokens.
///   out   the shape of q; must not overlap an operand
///
/// `is_causal`: position j is visible from itself on; not together with a mask. A row that sees
/// no key gives zeros. `scale`: 1 / sqrt(dim) by default. `dropout_p` is not read. Types: Float,
/// Half, BFloat16. Positions beyond the capacity are an error.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace torch::executor::native {

using executorch::aten::Tensor;
using std::optional;

/// Writes k_projected and v_projected [batch, seq_len, kv_heads, dim] into the caches at
/// `start_pos`, then custom_sdpa over them.
Tensor& sdpa_with_kv_cache_out(KernelRuntimeContext& ctx, const Tensor& q_projected,
                               const Tensor& k_projected, const Tensor& v_projected,
                               Tensor& key_cache, Tensor& value_cache, const int64_t start_pos,
                               const int64_t seq_len, const optional<Tensor>& attn_mask,
                               const double dropout_p, const bool is_causal,
                               const optional<double>& scale, Tensor& output);

Tensor& custom_sdpa_out(RuntimeContext& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const int64_t start_pos, const optional<Tensor>& attn_mask,
                        const double dropout_p, const bool is_causal, const optional<double>& scale,
                        Tensor& output);

/// Without positions: [batch, heads, tokens, dim], all keys are read, and `is_causal` counts both
/// from 0.
Tensor& flash_attention_kernel_out(KernelRuntimeContext& ctx, const Tensor& query,
                                   const Tensor& key, const Tensor& value,
                                   const optional<Tensor>& attn_mask, const double dropout_p,
                                   const bool is_causal, const optional<double>& scale,
                                   Tensor& output);

/// custom_sdpa over k and v of Char with a scale (Float) and a zero point (Char) for each row of
/// dim numbers: shape [.., 1]. q is Char likewise, or a float type without scales. The type of
/// `out` is Float, Half or BFloat16. `is_seq_at_dim_2`: all are [batch, heads, tokens, dim].
Tensor& custom_quantized_sdpa_out(
    RuntimeContext& ctx, const Tensor& q, const Tensor& k, const Tensor& v, const int64_t start_pos,
    const optional<Tensor>& attn_mask, const double dropout_p, const bool is_causal,
    const optional<double>& scale, const optional<Tensor>& q_zero_points,
    const optional<Tensor>& q_scales, const optional<Tensor>& k_zero_points,
    const optional<Tensor>& k_scales, const optional<Tensor>& v_zero_points,
    const optional<Tensor>& v_scales, const bool is_seq_at_dim_2, Tensor& output);

/// A linear attention whose state S [key_dim, value_dim] forgets and is corrected by what it
/// predicts wrongly, for each token:
///   S = decay_t S;  S += k_t (beta_t (v_t - S^T k_t))^T;  out_t = S^T q_t
/// query [batch, heads, tokens, key_dim], key [batch, state_heads, tokens, key_dim], value [batch,
/// state_heads, tokens, value_dim], beta [batch, state_heads, tokens], initial_state [batch,
/// state_heads, key_dim, value_dim], out [batch, heads, tokens, value_dim]; all Float and
/// contiguous. state_heads divides heads: heads / state_heads heads of queries, one after the
/// other, read one state. decay, by which S is multiplied, has the shape of key, a number for each
/// row of S, or that of beta, one for all of S. final_state_out must not overlap initial_state.
std::tuple<Tensor&, Tensor&> gated_delta_rule_out(RuntimeContext& ctx, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& decay, const Tensor& beta,
                                                  const Tensor& initial_state, Tensor& out,
                                                  Tensor& final_state_out);

}  // namespace torch::executor::native
