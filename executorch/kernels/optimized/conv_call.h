/// A fused instruction: act(conv(input) + bias) + residual, or act(conv(input) + bias + residual).
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {

struct ConvCall : FusedCall {
  /// The arguments of aten::convolution: input, weight, bias, stride, padding, dilation,
  /// transposed, output_padding, groups.
  Span<EValue*> args;
  /// The weight and bias with a batch norm folded into them, which replace the convolution's own;
  /// null if there was no batch norm.
  const void* weight = nullptr;
  const void* bias = nullptr;
  cpu::Activation act;
  /// Whether the residual is added before the activation.
  bool act_last = false;
  EValue* residual = nullptr;

  /// Sets the sizes, strides and addresses of c, and resizes `out`. T is the element type of the
  /// operands. Returns false if the operands do not make a valid convolution.
  template <class T>
  bool bind(cpu::Conv<T>& c) const;
};

/// FusedCall::run for a ConvCall that is not part of a chain.
bool run_convolution(const FusedCall& call, KernelRuntimeContext& context);

/// Makes a call for node n, a convolution, without anything fused into it. Returns null if node n
/// is not suitable.
ConvCall* plain_convolution(Graph& graph, Arena& arena, int n);

}  // namespace executorch::optimized
