/// Linear interpolation of planes of floats to other extents.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace executorch::cpu {

/// y[p,i,j] = v0[i] * row(first_row[i]) + v1[i] * row(second_row[i])
///   row(r) = w0[j] * x[p,r,c] + w1[j] * x[p,r,min(c + 1, in_w - 1)],  c = first_column[j]
/// Rows of x and y are contiguous; strides are in elements. Columns and rows must be within x, and
/// must not decrease. y must not overlap x. Sizes >= 1. run() returns false, before anything is
/// written, if memory is refused. Threads share the rows; results do not depend on their number.
/// Scratch memory: three rows for each thread.
struct Bilinear {
  int64_t planes = 1, in_w = 1, out_h = 1, out_w = 1;
  const float* x = nullptr;
  int64_t x_plane = 0, x_row = 0;
  float* y = nullptr;
  int64_t y_plane = 0, y_row = 0;
  const int32_t *first_row = nullptr, *second_row = nullptr, *first_column = nullptr;
  const float *v0 = nullptr, *v1 = nullptr, *w0 = nullptr, *w1 = nullptr;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
