/// Arguments of the microkernels for products of floats by weights of 8-bit integers
/// (quantized_weights.h). They are no row of a type: their results are rounded, and panels of
/// dequantized weights multiplied, by the rows of floats.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

/// Rows of weights: element (j, p) is (data[j * ld + p] - zero_points[g]) * scales[g] with
/// g = j * groups + p / group. zero_points may be null.
struct QuantizedRows {
  const int8_t* data;
  int64_t ld;
  const float* scales;
  const float* zero_points;
  int64_t groups, group;
};

/// sums[i * ld_sums + j] = the dot product of row i of A with row j of the weights, i < m, j < n,
/// of k elements each.
struct FewQuantizedRows {
  const float* a;
  int64_t lda;
  int64_t m;
  int64_t k;
  QuantizedRows weights;
  int64_t n;
  float* sums;
  int64_t ld_sums;
};

/// The most rows of A for which few_rows_dot is faster than dequantizing panels.
constexpr int64_t kMostQuantizedRows = 16;

struct QuantizedKernels {
  void (*few_rows_dot)(const FewQuantizedRows&);
  /// to[j * ld + p] = element (j, p0 + p), j < nj, p < np
  void (*dequantize)(const QuantizedRows& weights, int64_t nj, int64_t p0, int64_t np, float* to,
                     int64_t ld);
};

}  // namespace executorch::cpu::gemm
