/// Normalisation of rows, and y = x * scale + shift, which is normalisation with given statistics.
#pragma once

#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// The mean of n >= 1 contiguous elements, and the sum of the squared differences from it. Runs of
/// elements are summed in float, the results of runs in double.
struct RowMoments {
  double mean, squares;
};
RowMoments moments(Type type, const void* x, int64_t n);

/// y[r,i] = (x[r,i] - mean_r) * rstd_r * weight[i / inner] + bias[i / inner]
/// with rstd = 1 / sqrt(variance + eps) over the n elements of a row (layer norm: inner 1; group
/// norm: a row is a group of n / inner channels). If `rms`, mean_r = 0 and the mean square takes
/// the place of the variance. Statistics are computed as by moments(). Rows are dense; y may be x.
/// Rows are split over threads; results do not depend on their number.
struct NormalizeRows {
  Type type = Type::F32;  // of x and y
  bool rms = false;
  int64_t rows = 0, n = 0, inner = 1;
  double eps = 0;
  const void* x = nullptr;
  void* y = nullptr;
  /// Floats; those of row r begin at element (r % weight_period) * (n / inner). Null means 1 for
  /// `weight` and 0 for `bias`.
  const float* weight = nullptr;
  const float* bias = nullptr;
  int64_t weight_period = 1;
  /// Receive the mean and the rstd of every row, if not null.
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
