/// A fused instruction: act(conv(input) + bias) + residual, or act(conv(input) + bias + residual).
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {

struct ConvCall : FusedCall {
  /// The arguments of aten::convolution: input, weight, bias, stride, padding, dilation,
  /// transposed, output_padding, groups.
  Span<EValue*> args;
  /// Null, or what replaces the convolution's own since a batch norm was folded into them.
  const void* weight = nullptr;
  const void* bias = nullptr;
  cpu::Activation act;
  /// Whether the residual is added before the activation.
  bool act_last = false;
  EValue* residual = nullptr;

  /// Sizes, strides and addresses, and the size of `out`; false if the operands are not what a
  /// convolution takes. T is their type.
  template <class T>
  bool bind(cpu::Conv<T>& c) const;
};

/// What runs a ConvCall that stands alone.
bool run_convolution(const FusedCall& call, KernelRuntimeContext& context);

/// The call of node n, a convolution with nothing else; null if it cannot be one.
ConvCall* plain_convolution(Graph& graph, Arena& arena, int n);

}  // namespace executorch::optimized
