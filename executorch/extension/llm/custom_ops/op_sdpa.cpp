#include <executorch/extension/llm/custom_ops/cache_update.h>
#include <executorch/extension/llm/custom_ops/op_sdpa.h>
#include <executorch/extension/llm/custom_ops/sdpa_call.h>
#include <executorch/extension/llm/custom_ops/tables.h>
#include <executorch/kernels/portable/internal/engine.h>

#include <cinttypes>

namespace torch::executor::native {

using namespace internal;
using executorch::aten::ScalarType;
using executorch::cpu::Attention;
using executorch::runtime::Kernel;
using executorch::runtime::Span;
using executorch::runtime::toString;

namespace {

const Tensor* get(const optional<Tensor>& t) {
  return t.has_value() ? &*t : nullptr;
}

Tensor& attend(KernelRuntimeContext& ctx, const SdpaCall& call, Tensor& out) {
  const ScalarType dtype = call.q.scalar_type();
  const auto type = engine_type(dtype);
  ET_REQUIRE(ctx,
             type.has_value() && call.k.scalar_type() == dtype && call.v.scalar_type() == dtype &&
                 out.scalar_type() == dtype,
             InvalidArgument, out,
             "%s: queries, keys, values and out of one type, Float, Half or BFloat16, were "
             "expected; found %s, %s, %s and %s",
             call.op, toString(dtype), toString(call.k.scalar_type()),
             toString(call.v.scalar_type()), toString(out.scalar_type()));
  if (!call.check(ctx) || !resize_out(ctx, call.op, out, call.q.sizes())) return out;
  ET_REQUIRE(ctx, is_contiguous(out), InvalidArgument, out, "%s: a contiguous out was expected",
             call.op);
  if (out.numel() == 0) return out;
  Attention run = call.attention(*type);
  run.q = call.rows(call.q);
  run.k = call.rows(call.k);
  run.v = call.rows(call.v);
  run.out = out.mutable_data_ptr();
  run.out_batch_stride = run.q.batch_stride;
  run.out_head_stride = run.q.head_stride;
  run.out_row_stride = run.q.row_stride;
  EngineScratch scratch(ctx);
  (void)require_scratch(ctx, call.op, run.run(scratch));
  return out;
}

}  // namespace

Tensor& custom_sdpa_out(RuntimeContext& ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const int64_t start_pos, const optional<Tensor>& attn_mask, const double,
                        const bool is_causal, const optional<double>& scale, Tensor& output) {
  return attend(ctx,
                {"custom_sdpa.out", q, k, v, get(attn_mask), start_pos, is_causal, scale,
                 /*heads_first=*/false, /*all_keys=*/false},
                output);
}

Tensor& flash_attention_kernel_out(KernelRuntimeContext& ctx, const Tensor& query,
                                   const Tensor& key, const Tensor& value,
                                   const optional<Tensor>& attn_mask, const double,
                                   const bool is_causal, const optional<double>& scale,
                                   Tensor& output) {
  return attend(ctx,
                {"flash_attention.out", query, key, value, get(attn_mask), 0, is_causal, scale,
                 /*heads_first=*/true, /*all_keys=*/true},
                output);
}

Tensor& sdpa_with_kv_cache_out(KernelRuntimeContext& ctx, const Tensor& q_projected,
                               const Tensor& k_projected, const Tensor& v_projected,
                               Tensor& key_cache, Tensor& value_cache, const int64_t start_pos,
                               const int64_t seq_len, const optional<Tensor>& attn_mask,
                               const double, const bool is_causal, const optional<double>& scale,
                               Tensor& output) {
  constexpr const char* kOp = "sdpa_with_kv_cache.out";
  const SdpaCall call = {kOp,       q_projected, key_cache, value_cache, get(attn_mask),
                         start_pos, is_causal,   scale,     false,       false};
  // All is checked before anything is written.
  if (!require_cache(ctx, kOp, k_projected, key_cache) ||
      !require_cache(ctx, kOp, v_projected, value_cache) || !call.check(ctx)) {
    return output;
  }
  ET_REQUIRE(ctx,
             k_projected.size(1) == call.tokens() && v_projected.size(1) == call.tokens() &&
                 seq_len == call.tokens(),
             InvalidArgument, output,
             "%s: queries, keys and values of as many tokens as seq_len, %" PRId64
             ", were expected; found %s, %s and %s",
             kOp, seq_len, ShapeText(q_projected).c_str(), ShapeText(k_projected).c_str(),
             ShapeText(v_projected).c_str());
  ET_REQUIRE(ctx,
             engine_type(key_cache.scalar_type()).has_value() &&
                 q_projected.scalar_type() == key_cache.scalar_type() &&
                 value_cache.scalar_type() == key_cache.scalar_type(),
             InvalidArgument, output,
             "%s: queries and caches of one type, Float, Half or BFloat16, were expected; found "
             "%s, %s and %s",
             kOp, toString(q_projected.scalar_type()), toString(key_cache.scalar_type()),
             toString(value_cache.scalar_type()));
  copy_into_cache(k_projected, key_cache, start_pos);
  copy_into_cache(v_projected, value_cache, start_pos);
  return attend(ctx, call, output);
}

namespace {

constexpr Kernel kSdpaOps[] = {
    ET_OP("llama::custom_quantized_sdpa.out", custom_quantized_sdpa_out),
    ET_OP("llama::custom_sdpa.out", custom_sdpa_out),
    ET_OP("llama::gated_delta_rule.out", gated_delta_rule_out),
    ET_OP("llama::channelwise_gated_delta_rule.out", gated_delta_rule_out),
    ET_OP("llama::sdpa_with_kv_cache.out", sdpa_with_kv_cache_out),
};

}  // namespace

Span<const Kernel> sdpa_ops() {
  return kSdpaOps;
}

}  // namespace torch::executor::native
