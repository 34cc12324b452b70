#include <executorch/kernels/portable/internal/gemm.h>

#include <executorch/kernels/portable/internal/gemm_kernels.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <algorithm>

// C is computed in blocks of kGemmRows x kGemmColumns that stay in accumulators on the stack over
// the whole depth. Per step of depth, a block of A is packed once into strips of the tile's height
// and each panel of B into the tile's width, both converted to the accumulator type and padded with
// zeros, so that the tile kernel sees one dtype, one layout and no edges.
namespace torch::executor::native::internal {
namespace {

// Rows up to which packing costs more than it saves.
constexpr int64_t kFewRows = 4;
// Columns (or depth) of one step of the few-rows path; their sums stay in the first-level cache.
constexpr int64_t kStream = 512;

template <class T>
void pack_matrix_panel(const void* matrix, int64_t p0, int64_t np, int64_t j0, int64_t nj,
                       Accumulator<T>* panel, int64_t width) {
  using Acc = Accumulator<T>;
  const auto& b = *static_cast<const MatrixView<const T>*>(matrix);
  const T* src = b.data + p0 * b.row_stride + j0 * b.col_stride;
  if (nj < width) std::fill_n(panel, np * width, Acc(0));
  if (b.col_stride == 1) {
    for (int64_t p = 0; p < np; ++p, src += b.row_stride, panel += width) {
      for (int64_t j = 0; j < nj; ++j) panel[j] = static_cast<Acc>(src[j]);
    }
  } else {
    for (int64_t j = 0; j < nj; ++j, src += b.col_stride) {
      for (int64_t p = 0; p < np; ++p) {
        panel[p * width + j] = static_cast<Acc>(src[p * b.row_stride]);
      }
    }
  }
}

// Strips of `height` rows: packed[(strip * np + p) * height + i].
template <class T>
void pack_rows(const Gemm<T>& g, int64_t i0, int64_t ni, int64_t p0, int64_t np, int64_t height,
               Accumulator<T>* packed) {
  using Acc = Accumulator<T>;
  int64_t columns[kGemmDepth];
  for (int64_t p = 0; p < np; ++p) {
    const int64_t at = p0 + p;
    columns[p] = g.a_inner == 0
                     ? at * g.a.col_stride
                     : at / g.a_inner * g.a_outer_stride + at % g.a_inner * g.a.col_stride;
  }
  for (int64_t s = 0; s < ni; s += height, packed += np * height) {
    const T* src = g.a.data + (i0 + s) * g.a.row_stride;
    const int64_t rows = std::min(height, ni - s);
    if (rows < height) std::fill_n(packed, np * height, Acc(0));
    for (int64_t i = 0; i < rows; ++i, src += g.a.row_stride) {
      for (int64_t p = 0; p < np; ++p) packed[p * height + i] = static_cast<Acc>(src[columns[p]]);
    }
  }
}

// Rounds sums[i * ld + j] into C at (i0, j0).
template <class T>
void store(const Gemm<T>& g, const Accumulator<T>* sums, int64_t ld, int64_t i0, int64_t ni,
           int64_t j0, int64_t nj) {
  using Acc = Accumulator<T>;
  const bool adds = g.addend.data != nullptr && g.beta != Acc(0);
  for (int64_t i = 0; i < ni; ++i, sums += ld) {
    T* c = g.c.data + (i0 + i) * g.c.row_stride + j0 * g.c.col_stride;
    if (!adds) {
      for (int64_t j = 0; j < nj; ++j) c[j * g.c.col_stride] = static_cast<T>(g.alpha * sums[j]);
      continue;
    }
    const T* d = g.addend.data + (i0 + i) * g.addend.row_stride + j0 * g.addend.col_stride;
    for (int64_t j = 0; j < nj; ++j) {
      c[j * g.c.col_stride] =
          static_cast<T>(g.alpha * sums[j] + g.beta * static_cast<Acc>(d[j * g.addend.col_stride]));
    }
  }
}

template <class T>
void run_blocked(const Gemm<T>& g, const PanelSource<Accumulator<T>>& source) {
  using Acc = Accumulator<T>;
  const GemmKernels<Acc>& kernels = gemm_kernels<Acc>();
  alignas(64) Acc sums[kGemmRows * kGemmColumns];
  alignas(64) Acc rows[kGemmRows * kGemmDepth];
  alignas(64) Acc panel[kGemmDepth * kMaxTileColumns];
  for (int64_t i0 = 0; i0 < g.m; i0 += kGemmRows) {
    const int64_t ni = std::min(kGemmRows, g.m - i0);
    for (int64_t j0 = 0; j0 < g.n; j0 += kGemmColumns) {
      const int64_t nj = std::min(kGemmColumns, g.n - j0);
      const int64_t used = (ni + kernels.rows - 1) / kernels.rows * kernels.rows;
      std::fill_n(sums, used * kGemmColumns, Acc(0));
      for (int64_t p0 = 0; p0 < g.k; p0 += kGemmDepth) {
        const int64_t np = std::min(kGemmDepth, g.k - p0);
        pack_rows(g, i0, ni, p0, np, kernels.rows, rows);
        for (int64_t j = 0; j < nj; j += kernels.columns) {
          source.pack(source.matrix, p0, np, j0 + j, std::min(kernels.columns, nj - j), panel,
                      kernels.columns);
          for (int64_t i = 0; i < ni; i += kernels.rows) {
            kernels.tile(rows + i * np, panel, np, sums + i * kGemmColumns + j, kGemmColumns);
          }
        }
      }
      store(g, sums, kGemmColumns, i0, ni, j0, nj);
    }
  }
}

// Elements [0, n) of a row of T as accumulators: the row itself, or converted into `buffer`.
template <class T>
const Accumulator<T>* as_accumulators(const T* src, int64_t n, Accumulator<T>* buffer) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    (void)n, (void)buffer;
    return src;
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<Accumulator<T>>(src[i]);
    return buffer;
  }
}

// Few rows of A against a B whose rows are contiguous: four rows of B at a time are scaled and
// added.
template <class T>
void run_few_rows(const Gemm<T>& g) {
  using Acc = Accumulator<T>;
  const GemmKernels<Acc>& kernels = gemm_kernels<Acc>();
  Acc sums[kFewRows * kStream];
  Acc buffer[4][kStream];
  const Acc zeros[kStream] = {};
  for (int64_t j0 = 0; j0 < g.n; j0 += kStream) {
    const int64_t nj = std::min(kStream, g.n - j0);
    std::fill_n(sums, g.m * kStream, Acc(0));
    for (int64_t p0 = 0; p0 < g.k; p0 += 4) {
      const Acc* b[4];
      for (int64_t r = 0; r < 4; ++r) {
        const T* row = g.b.data + (p0 + r) * g.b.row_stride + j0;
        b[r] = p0 + r < g.k ? as_accumulators(row, nj, buffer[r]) : zeros;
      }
      const int64_t np = std::min<int64_t>(4, g.k - p0);
      for (int64_t i = 0; i < g.m; ++i) {
        const T* src = g.a.data + i * g.a.row_stride + p0 * g.a.col_stride;
        Acc a[4] = {};
        for (int64_t r = 0; r < np; ++r) a[r] = static_cast<Acc>(src[r * g.a.col_stride]);
        kernels.add_rows(a, b, nj, sums + i * kStream);
      }
    }
    store(g, sums, kStream, 0, g.m, j0, nj);
  }
}

// Few rows of A against a B whose columns are contiguous (the weight of a linear layer): four
// columns at a time, each a dot product.
template <class T>
void run_few_dots(const Gemm<T>& g) {
  using Acc = Accumulator<T>;
  const GemmKernels<Acc>& kernels = gemm_kernels<Acc>();
  Acc x[kFewRows][kStream];
  Acc buffer[4][kStream];
  for (int64_t j0 = 0; j0 < g.n; j0 += 4) {
    Acc sums[kFewRows][4] = {};
    for (int64_t p0 = 0; p0 < g.k; p0 += kStream) {
      const int64_t np = std::min(kStream, g.k - p0);
      const Acc* w[4];
      for (int64_t r = 0; r < 4; ++r) {
        const int64_t j = std::min(j0 + r, g.n - 1);
        w[r] = as_accumulators(g.b.data + j * g.b.col_stride + p0, np, buffer[r]);
      }
      for (int64_t i = 0; i < g.m; ++i) {
        const T* src = g.a.data + i * g.a.row_stride + p0 * g.a.col_stride;
        const Acc* row = x[i];
        if (g.a.col_stride == 1) {
          row = as_accumulators(src, np, x[i]);
        } else {
          for (int64_t p = 0; p < np; ++p) x[i][p] = static_cast<Acc>(src[p * g.a.col_stride]);
        }
        kernels.dot_rows(row, w, np, sums[i]);
      }
    }
    store(g, &sums[0][0], 4, 0, g.m, j0, std::min<int64_t>(4, g.n - j0));
  }
}

template <class T>
MatrixView<T> transposed(const MatrixView<T>& x) {
  return {x.data, x.col_stride, x.row_stride};
}

}  // namespace

template <class T>
void Gemm<T>::run() const {
  if (m == 0 || n == 0) return;
  if (b_source.pack != nullptr) return run_blocked(*this, b_source);
  if (n < m && n <= kFewRows) {  // few columns are few rows of the transposed product
    Gemm flipped = *this;
    flipped.m = n;
    flipped.n = m;
    flipped.a = transposed(b);
    flipped.b = transposed(a);
    flipped.c = transposed(c);
    flipped.addend = transposed(addend);
    return flipped.run();
  }
  if (m <= kFewRows && k > 0 && b.col_stride == 1) return run_few_rows(*this);
  if (m <= kFewRows && k > 0 && b.row_stride == 1) return run_few_dots(*this);
  run_blocked(*this, {pack_matrix_panel<T>, &b});
}

template struct Gemm<uint8_t>;
template struct Gemm<int8_t>;
template struct Gemm<int16_t>;
template struct Gemm<int32_t>;
template struct Gemm<int64_t>;
template struct Gemm<executorch::aten::Half>;
template struct Gemm<executorch::aten::BFloat16>;
template struct Gemm<float>;
template struct Gemm<double>;

}  // namespace torch::executor::native::internal
