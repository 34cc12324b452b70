/// Attention among a method's values, run by the engine.
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
  // From the first product [b, t, s] to the place of the mask, to the softmax, and from there to
  // the second product.
  Span<const Step> before_mask, before_softmax, after_softmax;
  Operand mask;
  cpu::Attention::Mask mask_kind = cpu::Attention::Mask::None;
  bool causal = false;
  Triangle triangle;
  bool safe = false;
  // From the second product to out.
  Span<const Step> out_steps;
};

/// FusedCall::run of an AttentionCall.
bool run_attention(const FusedCall& call, KernelRuntimeContext& context);

}  // namespace executorch::optimized
