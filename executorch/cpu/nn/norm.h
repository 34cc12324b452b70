/// Normalisation of rows, and what it comes down to with given statistics: y = x * scale + shift.
#pragma once

#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// Mean of n >= 1 neighbouring elements and the sum of their squared distances from it; in float
/// within runs and in double above.
struct RowMoments {
  double mean, squares;
};
RowMoments moments(Type type, const void* x, int64_t n);

/// y[r,i] = (x[r,i] - mean_r) * rstd_r * weight[i / inner] + bias[i / inner]
/// with rstd = 1 / sqrt(variance + eps) over the n elements of a row (layer norm: inner 1; group
/// norm: a row is a group of n / inner channels), or, if `rms`, mean = 0 and the mean square in the
/// variance's place. Statistics are in float within runs and in double above; rows dense; y may
/// be x. Rows are split over threads; results do not depend on their number.
struct NormalizeRows {
  Type type = Type::F32;  // of x and y
  bool rms = false;
  int64_t rows = 0, n = 0, inner = 1;
  double eps = 0;
  const void* x = nullptr;
  void* y = nullptr;
  /// Float, of row r from element (r % weight_period) * (n / inner) on; null: 1 and 0.
  const float* weight = nullptr;
  const float* bias = nullptr;
  int64_t weight_period = 1;
  /// Of every row, where not null.
  float* mean = nullptr;
  float* rstd = nullptr;

  void run() const;
};

/// y[o,c,i] = x[o,c,i] * scale[c] + shift[c] for dense [outer, channels, inner]; y may be x.
struct ScaleChannels {
  Type type = Type::F32;
  int64_t outer = 1, channels = 1, inner = 1;
  const void* x = nullptr;
  void* y = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;

  void run() const;
};

}  // namespace executorch::cpu
