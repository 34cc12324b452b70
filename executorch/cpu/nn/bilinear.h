/// Linear interpolation of planes of floats to other extents.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace executorch::cpu {

/// y[p,i,j] = v0[i] * row(first_row[i]) + v1[i] * row(second_row[i])
///   row(r) = w0[j] * x[p,r,c] + w1[j] * x[p,r,min(c + 1, in_w - 1)],  c = first_column[j]
/// Rows of x and y are contiguous; strides are in elements. Columns and rows must be within x, and
/// must not decrease. y must not overlap x. Sizes >= 1, rows and columns of x < 2^31. run() returns
/// false, before anything is written, if memory is refused. Threads share the rows; results do not
/// depend on their number. Scratch memory: three rows for each thread.
struct Bilinear {
  int64_t planes = 1, in_w = 1, out_h = 1, out_w = 1;
  const float* x = nullptr;
  int64_t x_plane = 0, x_row = 0;
  float* y = nullptr;
  int64_t y_plane = 0, y_row = 0;
  const int32_t *first_row = nullptr, *second_row = nullptr, *first_column = nullptr;
  const float *v0 = nullptr, *v1 = nullptr, *w0 = nullptr, *w1 = nullptr;

  /// Two rows or columns of x, and their weights.
  struct Pair {
    int64_t first, second;
    float w0, w1;
  };
  /// Sets the rows, columns and weights: those of output row i are down(i), those of output column
  /// j are across(j). The extents of y are set before. The memory must outlive the calls of run();
  /// returns false if it is refused.
  template <class Down, class Across>
  [[nodiscard]] bool place(const Down& down, const Across& across, Scratch& scratch) {
    auto* const places = scratch.array<int32_t>(Size(out_h) * 2 + out_w);
    auto* const weights = scratch.array<float>((Size(out_h) + out_w) * 2);
    if (places == nullptr || weights == nullptr) return false;
    float *const v = weights, *const w = weights + 2 * out_h;
    int32_t* const columns = places + 2 * out_h;
    for (int64_t i = 0; i < out_h; ++i) {
      const Pair rows = down(i);
      places[i] = static_cast<int32_t>(rows.first);
      places[out_h + i] = static_cast<int32_t>(rows.second);
      v[i] = rows.w0, v[out_h + i] = rows.w1;
    }
    for (int64_t j = 0; j < out_w; ++j) {
      const Pair pair = across(j);
      columns[j] = static_cast<int32_t>(pair.first);
      w[j] = pair.w0, w[out_w + j] = pair.w1;
    }
    first_row = places, second_row = places + out_h, first_column = columns;
    v0 = v, v1 = v + out_h, w0 = w, w1 = w + out_w;
    return true;
  }

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
