/// softmax(scale * q k + mask) v of values of a method, run by cpu::Attention; t queries, s keys.
#pragma once

#include <executorch/cpu/nn/attention.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/optimized/triangle.h>

namespace executorch::optimized {

struct AttentionCall : FusedCall {
  Operand q;  // [b, t, d], b = batch * heads
  Operand k;  // [b, d, s]
  Operand v;  // [b, s, dv], of the type of k
  float scale = 1;
  // Views of the scores, [b, t, s] at first: between q k and the addition of the mask, between that
  // and the softmax, and between the softmax and the product with v.
  Span<const Step> before_mask, before_softmax, after_softmax;
  Operand mask;
  cpu::Attention::Mask mask_kind = cpu::Attention::Mask::None;
  // Whether keys behind `triangle` are hidden, instead of by a mask.
  bool causal = false;
  Triangle triangle;
  // Whether a query without any visible key gives zeros; else NaN, as eager PyTorch's softmax.
  bool safe = false;
  // Views of the result [b, t, dv] up to `out`.
  Span<const Step> out_steps;
};

/// FusedCall::run of an AttentionCall.
bool run_attention(const FusedCall& call, KernelRuntimeContext& context);

}  // namespace executorch::optimized
