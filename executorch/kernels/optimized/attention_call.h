/// A fused instruction: softmax(scale * q k + mask) v, run by cpu::Attention, for t queries and s
/// keys.
#pragma once

#include <executorch/cpu/nn/attention.h>
#include <executorch/kernels/optimized/causal_mask.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {

struct AttentionCall : FusedCall {
  Operand q;  // [b, t, d], b = batch * heads
  Operand k;  // [b, d, s]
  Operand v;  // [b, s, dv], of the type of k
  float scale = 1;
  // The views that the program applies to the scores, which are [b, t, s] at first: between q k and
  // the addition of the mask, between that and the softmax, and between the softmax and the product
  // with v.
  Span<const Step> before_mask, before_softmax, after_softmax;
  Operand mask;
  cpu::Attention::Mask mask_kind = cpu::Attention::Mask::None;
  // If true, `causal_mask` says which keys are hidden, and there is no mask.
  bool causal = false;
  CausalMask causal_mask;
  // Whether a query without any visible key gives zeros. Otherwise it gives NaN, as softmax in
  // eager PyTorch.
  bool safe = false;
  // The views that lead from the result [b, t, dv] to `out`.
  Span<const Step> out_steps;
};

/// FusedCall::run for an AttentionCall.
bool run_attention(const FusedCall& call, KernelRuntimeContext& context);

}  // namespace executorch::optimized
