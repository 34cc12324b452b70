/// Operands of a product as strided views, and their conversion to the form that microkernels read.
#pragma once

#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/gemm/kernels.h>

#include <algorithm>
#include <utility>

namespace executorch::cpu::gemm {

template <class T>
Matrix<T> transposed(const Matrix<T>& x) {
  return {x.data, x.col_stride, x.row_stride};
}

/// The product that gives the transpose of C. `g` has no MatrixSource.
template <class T>
Gemm<T> transposed(const Gemm<T>& g) {
  Gemm<T> t = g;
  std::swap(t.m, t.n);
  std::swap(t.a, t.b);
  std::swap(t.a_batch, t.b_batch);
  t.a = transposed(t.a);
  t.b = transposed(t.b);
  t.c = transposed(t.c);
  t.addend = transposed(t.addend);
  t.residual = transposed(t.residual);
  return t;
}

/// The address of element (i, j).
template <class T>
const T* element(const Matrix<const T>& x, int64_t i, int64_t j) {
  return x.data + i * x.row_stride + j * x.col_stride;
}

/// Computes the results of the ni x nj block of C at row i0 and column j0 of batch entry s from its
/// sums, sums[i * ld + j]. Unlike Microkernels::finish it exists for every type.
template <class T>
void finish(const Gemm<T>& g, int64_t s, const Accumulator<T>* sums, int64_t ld, int64_t i0,
            int64_t ni, int64_t j0, int64_t nj) {
  using Acc = Accumulator<T>;
  if constexpr (kIsStoredFloat<T>) {
    row<T>().finish({&g, s, sums, ld, i0, ni, j0, nj});
  } else {
    const bool adds = g.addend.data != nullptr && g.beta != Acc(0);
    for (int64_t i = i0; i < i0 + ni; ++i, sums += ld) {
      for (int64_t j = 0; j < nj; ++j) {
        Acc x = g.alpha * sums[j];
        if (adds) x += g.beta * static_cast<Acc>(element(g.addend, i, j0 + j)[s * g.addend_batch]);
        if (g.residual.data != nullptr) {
          x += static_cast<Acc>(element(g.residual, i, j0 + j)[s * g.residual_batch]);
        }
        g.c.data[s * g.c_batch + i * g.c.row_stride + (j0 + j) * g.c.col_stride] =
            static_cast<T>(x);
      }
    }
  }
}

/// to[j] = from[j], j < n
template <class T>
void convert(const T* from, int64_t n, Accumulator<T>* to) {
  if constexpr (std::is_class_v<T>) {
    row<T>().operand.convert(from, n, to);
  } else {
    std::copy_n(from, n, to);
  }
}

/// to[j] = from[j * stride], j < n
template <class T>
void gather(const T* from, int64_t stride, int64_t n, Accumulator<T>* to) {
  if (stride == 1) return convert(from, n, to);
  if constexpr (std::is_class_v<T>) {
    T buffer[64];
    for (int64_t j = 0; j < n; j += 64) {
      const int64_t nj = std::min<int64_t>(64, n - j);
      for (int64_t l = 0; l < nj; ++l) buffer[l] = from[(j + l) * stride];
      row<T>().operand.convert(buffer, nj, to + j);
    }
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = static_cast<Accumulator<T>>(from[j * stride]);
  }
}

/// Converts rows [0, ni) and columns [0, np) of `a` to accumulators at to[i * ld + p]. ld must be a
/// multiple of kMostLanes.
template <class T>
void convert_rows(const Matrix<const T>& a, int64_t ni, int64_t np, Accumulator<T>* to,
                  int64_t ld) {
  if constexpr (kIsStoredFloat<T>) {
    if (a.col_stride == 1) {
      for (int64_t i = 0; i < ni; ++i) convert(a.data + i * a.row_stride, np, to + i * ld);
      return;
    }
    if (a.row_stride == 1) return row<T>().pack_columns(a.data, a.col_stride, ni, np, to, ld);
  }
  for (int64_t i = 0; i < ni; ++i) gather(element(a, i, 0), a.col_stride, np, to + i * ld);
}

/// Packs rows [0, np) and columns [0, nj) of a `b` with any strides to `panel`, which is `width`
/// columns wide. Columns from nj on become zero.
template <class T>
void gather_panel(const Matrix<const T>& b, int64_t np, int64_t nj, Accumulator<T>* panel,
                  int64_t width) {
  for (int64_t p = 0; p < np; ++p, panel += width) {
    gather(element(b, p, 0), b.col_stride, nj, panel);
    std::fill(panel + nj, panel + width, Accumulator<T>(0));
  }
}

}  // namespace executorch::cpu::gemm
