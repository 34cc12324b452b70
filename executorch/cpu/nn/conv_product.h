/// The microkernel of convolutions over planes: it computes some channels of a block of pixels.
#pragma once

#include <executorch/cpu/activation.h>

#include <cstdint>

namespace executorch::cpu {

/// out[i][j] = act(sum_p a[i][p] * b[p][j] + bias[i]) + residual[i][j], or
///             act(... + residual[i][j]) if `act_last`
///   i < m     channels: rows of `a`, contiguous along p < k
///   j < n     pixels, n <= most_columns. Row p of b begins at b + offsets[p], or at b + p * ldb
///             without offsets, and is read up to a multiple of `lanes`
///   n <= j < n + n_tail
///             the tail, pixels that are left over from whole vectors: column j - n is contiguous
///             along p at tail + (j - n) * ld_tail. Vectors run along p, so that a tail pixel
///             does not cost as much as a vector of pixels
///   partial   [m, n + n_tail], partial sums that are added instead of the bias, or null
///   residual  laid out as out, or null; may be `out` itself
struct PlaneProduct {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  const float* b = nullptr;
  int64_t ldb = 0;
  const int64_t* offsets = nullptr;
  int64_t n_tail = 0;
  const float* tail = nullptr;
  int64_t ld_tail = 0;
  const float* partial = nullptr;
  int64_t ld_partial = 0;
  float* out = nullptr;
  int64_t ld_out = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  Activation act = {};
  bool act_last = false;
};

struct PlaneTerm {
  const float* from;
  float scale;
  int64_t begin, end;
};

struct PlaneKernels {
  int64_t lanes;
  int64_t most_columns;  // the most columns of a block: three vectors
  int64_t rows;          // the rows of a tile
  void (*product)(const PlaneProduct&);
  /// Splits a row of n elements into those of even and those of odd index.
  void (*split)(const float* from, int64_t n, float* even, float* odd);
  /// to[i] = y + sum over the terms with begin <= i < end of scale * from[i - begin], i < n
  ///   y   *first, or to[i] if `first` is null
  void (*add)(const PlaneTerm* terms, int64_t n_terms, const float* first, int64_t n, float* to);
  /// to[i] = from[i % parts * ld + i / parts], i < n: the elements of several rows in turn.
  void (*join)(const float* from, int64_t ld, int64_t parts, int64_t n, float* to);
};
const PlaneKernels& plane_kernels();

}  // namespace executorch::cpu
