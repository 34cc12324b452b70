/// Weights of a matrix product that a program stores as 8-bit integers, and dequantizes in front of
/// the product. The product reads them as they are stored (cpu/gemm/quantized_weights.h).
#pragma once

#include <executorch/cpu/gemm/quantized_weights.h>
#include <executorch/kernels/optimized/arena.h>
#include <executorch/kernels/optimized/graph.h>

namespace executorch::optimized {

struct QuantizedOperand {
  const EValue* scales = nullptr;       // null: all are `scale`, which read() does not apply
  const EValue* zero_points = nullptr;  // null: all are 0
  int64_t group = 0;                    // 0: the operand is no such weight
  float scale = 1;

  bool present() const { return group > 0; }
  /// Sets `weights` to those of the matrix `integers`. Scales and zero points that are no floats
  /// are converted in scratch memory; returns false if that is refused.
  [[nodiscard]] bool read(const Tensor& integers, cpu::Scratch& scratch,
                          cpu::QuantizedWeights& weights) const;
};

/// Whether the value at which `chain` begins is a constant matrix of int8 that is dequantized in
/// `block`, by a scale for all, for each row or for groups of a row's elements, or only cast (the
/// program then scales the product). If so, the chain begins at the integers afterwards.
bool find_quantized(const Graph& graph, int block, Graph::Chain& chain, QuantizedOperand& found);

}  // namespace executorch::optimized
