/// A convolution with what follows it, as an instruction.
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {

struct ConvCall : FusedCall {
  /// Those of the convolution: input, weight, bias, stride, padding, dilation, transposed,
  /// output_padding, groups.
  Span<EValue*> args;
  /// Instead of those of the convolution, where a batch norm was folded in; else null.
  const void* weight = nullptr;
  const void* bias = nullptr;
  cpu::Activation act;
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
