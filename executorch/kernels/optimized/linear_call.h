/// A matrix product with its epilogue, which replaces a program's instructions.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/kernels/optimized/fused_call.h>
#include <executorch/kernels/optimized/quantized_operand.h>

namespace executorch::optimized {

using cpu::Activation;

/// A tensor that is added to the product after the views `steps`.
struct Term {
  bool present = false;
  Operand operand;
  Span<const Step> steps;
};

struct LinearCall : FusedCall {
  Operand a;  // [m, k], [b, m, k], or [..., k] of linear
  Operand b;  // [k, n], [b, k, n], or [n, k] of linear
  bool is_linear = false;
  QuantizedOperand quantized;  // what b is, perhaps
  Term addend, residual;
  Activation act;
  bool act_last = false;
  Span<const Step> out_steps;
  /// Numbers, one for each row of the result, by which the program multiplies what it computes of
  /// the row and nothing else: where one is zero, the row may be zero. Not used if `base` is null.
  Operand factor = {};
};

/// The data of node n if it is such a product, or is made one here; null otherwise. The uses of the
/// graph's values are up to date afterwards.
LinearCall* linear_call(Graph& graph, Arena& arena, int n);

}  // namespace executorch::optimized
