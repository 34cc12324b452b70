/// Products of floats by weights that are stored as 8-bit integers. Activations stay floats (the
/// products of int8.h quantize them, too).
#pragma once

#include <executorch/cpu/gemm/gemm.h>

#include <cstdint>

namespace executorch::cpu {

/// The weights of a linear layer, [n, k]. Element (j, p) is
///   (data[j * row_stride + p] - zero_points[g]) * scales[g], g = j * (k / group) + p / group
struct QuantizedWeights {
  const int8_t* data = nullptr;
  int64_t row_stride = 0;
  const float* scales = nullptr;       // null: all are 1
  const float* zero_points = nullptr;  // null: all are 0
  int64_t group = 0;  // elements of a row that share a scale; k is a multiple of it
};

/// Computes `gemm` with b[p, j] = element (j, p) of `weights`, for every batch entry. The operands
/// b and b_source of `gemm` are not used; k > 0. One row of A is multiplied by the weights as they
/// are read, so that a token takes as long as reading 8-bit weights from memory does; for more
/// rows, weights are dequantized a few rows at a time, into a cache. Returns false where
/// Gemm::run() does, and results do not depend on the number of threads either.
template <class T>
[[nodiscard]] bool multiply(const Gemm<T>& gemm, const QuantizedWeights& weights, Scratch& scratch);

}  // namespace executorch::cpu
