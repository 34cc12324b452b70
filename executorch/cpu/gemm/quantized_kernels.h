/// Arguments of the microkernels for products of floats by weights of 8-bit integers
/// (quantized_weights.h). The rows of floats multiply weights that are dequantized already, and
/// finish the results.
#pragma once

#include <cstdint>

namespace executorch::cpu::gemm {

/// Rows of weights: element (j, p) is (data[j * ld + p] - zero_points[g]) * scales[g] with
/// g = j * groups + p / group. Without scales they are 1, without zero_points 0.
struct QuantizedRows {
  const int8_t* data;
  int64_t ld;
  const float* scales;
  const float* zero_points;
  int64_t groups, group;

  /// The rows from row j on.
  QuantizedRows from(int64_t j) const {
    QuantizedRows rows = *this;
    rows.data += j * ld;
    if (scales != nullptr) rows.scales += j * groups;
    if (zero_points != nullptr) rows.zero_points += j * groups;
    return rows;
  }
};

/// sums[j] = the dot product of a row of A with row j of the weights, j < n, of k elements each.
struct QuantizedRow {
  const float* a;
  int64_t k;
  QuantizedRows weights;
  int64_t n;
  float* sums;
};

struct QuantizedKernels {
  void (*row_dots)(const QuantizedRow&);
  /// to[j * ld + p] = element (j, p0 + p), j < nj, p < np
  void (*dequantize)(const QuantizedRows& weights, int64_t nj, int64_t p0, int64_t np, float* to,
                     int64_t ld);
};

}  // namespace executorch::cpu::gemm
