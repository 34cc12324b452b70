#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/portable/internal/factor.h>

#include <algorithm>
#include <cmath>

namespace torch::executor::native::internal {

namespace cpu = executorch::cpu;

namespace {

// Rows or columns below which a block is computed element by element, and reflections that are one
// product: products of that depth keep the multiply-adds busy, and a panel of a few thousand such
// rows lies in L2.
constexpr int64_t kNarrow = 32;

/// A part of a matrix, or of its transpose.
struct Block {
  double* data;
  int64_t rows, columns, row_stride, column_stride;

  Block(double* from, int64_t n, int64_t m, int64_t down, int64_t across)
      : data(from), rows(n), columns(m), row_stride(down), column_stride(across) {}
  Block(const Matrix& m) : Block(m.data, m.rows, m.columns, m.columns, 1) {}

  double& operator()(int64_t r, int64_t c) const {
    return data[r * row_stride + c * column_stride];
  }
  /// Rows [r, r + n), columns [c, c + m).
  Block part(int64_t r, int64_t n, int64_t c, int64_t m) const {
    return {&(*this)(r, c), n, m, row_stride, column_stride};
  }
  /// From row r and column c on.
  Block from(int64_t r, int64_t c) const { return part(r, rows - r, c, columns - c); }
  Block transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// c = alpha * a b, and c itself is added if so asked.
bool multiply(double alpha, const Block& a, const Block& b, bool add, const Block& c,
              cpu::Scratch& scratch) {
  cpu::Gemm<double> g;
  g.m = c.rows;
  g.n = c.columns;
  g.k = a.columns;
  g.a = {a.data, a.row_stride, a.column_stride};
  g.b = {b.data, b.row_stride, b.column_stride};
  g.c = {c.data, c.row_stride, c.column_stride};
  g.alpha = alpha;
  if (add) g.residual = {c.data, c.row_stride, c.column_stride};
  return g.run(scratch);
}

/// c -= a b
bool subtract_product(const Block& c, const Block& a, const Block& b, cpu::Scratch& scratch) {
  return multiply(-1, a, b, true, c, scratch);
}

/// The place at which a block of n rows or columns is divided: a multiple of kNarrow.
int64_t half(int64_t n) {
  return std::max(kNarrow, n / 2 / kNarrow * kNarrow);
}

void swap_rows(const Block& a, int64_t r, int64_t other) {
  if (r == other) return;
  for (int64_t c = 0; c < a.columns; ++c) std::swap(a(r, c), a(other, c));
}

void swap_rows(const Block& a, const double* pivots, int64_t n) {
  for (int64_t k = 0; k < n; ++k) swap_rows(a, k, static_cast<int64_t>(pivots[k]) - 1);
}

void factor_narrow_lu(const Block& a, double* pivots, int64_t& info) {
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < a.rows; ++r) {
      if (std::fabs(a(r, k)) > std::fabs(a(best, k))) best = r;
    }
    pivots[k] = static_cast<double>(best + 1);
    if (a(best, k) == 0) {
      if (info == 0) info = k + 1;
      continue;
    }
    swap_rows(a, k, best);
    for (int64_t r = k + 1; r < a.rows; ++r) {
      const double factor = a(r, k) /= a(k, k);
      double* const row = &a(r, 0);  // contiguous, as all that is not transposed
      const double* const pivot = &a(k, 0);
      for (int64_t c = k + 1; c < a.columns; ++c) row[c] -= factor * pivot[c];
    }
  }
}

bool solve(const Block& t, bool upper, bool unit, const Block& b, cpu::Scratch& scratch) {
  if (t.rows > kNarrow) {
    const int64_t n = half(t.rows), m = b.columns;
    const int64_t first = upper ? n : 0, then = upper ? 0 : n;  // of the two parts of the rows
    const int64_t firsts = upper ? t.rows - n : n, rest = t.rows - firsts;
    const Block known = b.part(first, firsts, 0, m), wanted = b.part(then, rest, 0, m);
    return solve(t.part(first, firsts, first, firsts), upper, unit, known, scratch) &&
           subtract_product(wanted, t.part(then, rest, first, firsts), known, scratch) &&
           solve(t.part(then, rest, then, rest), upper, unit, wanted, scratch);
  }
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t r = upper ? t.rows - 1 - i : i;
    for (int64_t k = upper ? r + 1 : 0; k < (upper ? t.rows : r); ++k) {
      const double factor = t(r, k);
      for (int64_t c = 0; c < b.columns; ++c) b(r, c) -= factor * b(k, c);
    }
    for (int64_t c = 0; !unit && c < b.columns; ++c) b(r, c) /= t(r, r);
  }
  return true;
}

/// `info` is 0 before, or an earlier pivot's.
bool factor(const Block& a, double* pivots, int64_t& info, cpu::Scratch& scratch) {
  const int64_t steps = std::min(a.rows, a.columns);
  if (steps <= kNarrow) {
    factor_narrow_lu(a, pivots, info);
    return true;
  }
  const int64_t n = half(steps);
  if (!factor(a.part(0, a.rows, 0, n), pivots, info, scratch)) return false;
  const Block right = a.part(0, a.rows, n, a.columns - n), rest = a.from(n, n);
  swap_rows(right, pivots, n);
  const Block top = right.part(0, n, 0, right.columns);
  int64_t failed = 0;
  if (!solve(a.part(0, n, 0, n), false, true, top, scratch) ||
      !subtract_product(rest, a.part(n, a.rows - n, 0, n), top, scratch) ||
      !factor(rest, pivots + n, failed, scratch)) {
    return false;
  }
  if (info == 0 && failed != 0) info = n + failed;
  swap_rows(a.part(n, a.rows - n, 0, n), pivots + n, steps - n);
  for (int64_t k = n; k < steps; ++k) pivots[k] += static_cast<double>(n);
  return true;
}

bool cholesky(const Block& a, int64_t& info, cpu::Scratch& scratch) {
  if (a.rows > kNarrow) {
    const int64_t n = half(a.rows), rest = a.rows - n;
    const Block first = a.part(0, n, 0, n), below = a.part(n, rest, 0, n), last = a.from(n, n);
    if (!cholesky(first, info, scratch)) return false;
    if (info != 0) return true;
    if (!solve(first, false, false, below.transposed(), scratch) ||
        !subtract_product(last, below, below.transposed(), scratch) ||
        !cholesky(last, info, scratch)) {
      return false;
    }
    if (info != 0) info += n;
    return true;
  }
  for (int64_t k = 0; k < a.rows; ++k) {
    double rest = a(k, k);
    for (int64_t j = 0; j < k; ++j) rest -= a(k, j) * a(k, j);
    if (!(rest > 0)) {
      info = k + 1;
      return true;
    }
    a(k, k) = std::sqrt(rest);
    for (int64_t r = k + 1; r < a.rows; ++r) {
      double sum = a(r, k);
      for (int64_t j = 0; j < k; ++j) sum -= a(r, j) * a(k, j);
      a(r, k) = sum / a(k, k);
    }
  }
  return true;
}

/// Reflections of a block of columns, whose vectors, begun with 1, stay below its diagonal.
struct Reflections {
  Block vectors;         // as lower triangle without its diagonal
  const double* scales;  // of each
};

/// Makes the at most kNarrow columns of `a`, whose rows are contiguous, upper triangular by
/// reflections.
void reflect_columns(const Block& a, double* scales) {
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    double below = 0;
    for (int64_t r = k + 1; r < a.rows; ++r) below += a(r, k) * a(r, k);
    scales[k] = 0;
    if (below == 0) continue;
    const double alpha = a(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + below), alpha);
    scales[k] = (beta - alpha) / beta;
    for (int64_t r = k + 1; r < a.rows; ++r) a(r, k) /= alpha - beta;
    a(k, k) = beta;
    double dots[kNarrow];
    const auto row = [&](int64_t r) { return &a(r, 0); };
    std::copy(row(k), row(k) + a.columns, dots);
    for (int64_t r = k + 1; r < a.rows; ++r) {
      const double factor = a(r, k);
      for (int64_t c = k + 1; c < a.columns; ++c) dots[c] += factor * row(r)[c];
    }
    for (int64_t c = k + 1; c < a.columns; ++c) row(k)[c] -= dots[c] *= scales[k];
    for (int64_t r = k + 1; r < a.rows; ++r) {
      const double factor = a(r, k);
      for (int64_t c = k + 1; c < a.columns; ++c) row(r)[c] -= factor * dots[c];
    }
  }
}

/// m = H m, where H = I - V T V^T is the product of the reflections, the first leftmost, or m =
/// H^T m.
bool apply(const Reflections& h, bool transposed, const Block& m, cpu::Scratch& scratch) {
  if (m.columns == 0) return true;
  const cpu::Scratch::Frame frame(scratch);
  const int64_t n = h.vectors.columns, rows = h.vectors.rows;
  const auto array = [&](int64_t r, int64_t c) {
    return Block(Matrix{scratch.array<double>(cpu::Size(r) * c), r, c});
  };
  const Block v = array(rows, n), gram = array(n, n), t = array(n, n);
  const Block dots = array(n, m.columns), scaled = array(n, m.columns);
  for (const Block& b : {v, gram, t, dots, scaled}) {
    if (b.data == nullptr) return false;
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < n; ++c) v(r, c) = r > c ? h.vectors(r, c) : r == c ? 1 : 0;
  }
  if (!multiply(1, v.transposed(), v, false, gram, scratch)) return false;
  for (int64_t k = 0; k < n; ++k) {  // column by column of the upper triangle
    for (int64_t r = 0; r < n; ++r) {
      double sum = 0;
      for (int64_t j = r; j < k && r < k; ++j) sum += t(r, j) * gram(j, k);
      t(r, k) = r < k ? -h.scales[k] * sum : r == k ? h.scales[k] : 0;
    }
  }
  return multiply(1, v.transposed(), m, false, dots, scratch) &&
         multiply(1, transposed ? t.transposed() : t, dots, false, scaled, scratch) &&
         subtract_product(m, v, scaled, scratch);
}

}  // namespace

bool factor_lu(const Matrix& a, double* pivots, int64_t& info, cpu::Scratch& scratch) {
  info = 0;
  return factor(a, pivots, info, scratch);
}

bool solve_triangle(const Matrix& t, bool upper, bool unit, const Matrix& b,
                    cpu::Scratch& scratch) {
  return solve(t, upper, unit, b, scratch);
}

bool solve_lu(const Matrix& lu, const double* pivots, const Matrix& b, cpu::Scratch& scratch) {
  swap_rows(b, pivots, lu.rows);
  return solve(lu, false, true, b, scratch) && solve(lu, true, false, b, scratch);
}

bool factor_cholesky(const Matrix& a, int64_t& info, cpu::Scratch& scratch) {
  info = 0;
  if (!cholesky(a, info, scratch)) return false;
  for (int64_t r = 0; r < a.rows; ++r) std::fill(a[r] + r + 1, a[r] + a.columns, 0.0);
  return true;
}

bool factor_qr(const Matrix& a, const Matrix& q, cpu::Scratch& scratch) {
  const cpu::Scratch::Frame frame(scratch);
  const int64_t n = std::min(a.rows, a.columns);
  double* const scales = scratch.array<double>(n);
  if (scales == nullptr) return false;
  const Block whole = a, product = q;
  const auto reflections = [&](int64_t k) {
    return Reflections{whole.part(k, a.rows - k, k, std::min(kNarrow, n - k)), scales + k};
  };
  for (int64_t k = 0; k < n; k += kNarrow) {
    const Reflections h = reflections(k);
    reflect_columns(h.vectors, scales + k);
    if (!apply(h, true, whole.from(k, k + h.vectors.columns), scratch)) return false;
  }
  for (int64_t k = (n - 1) / kNarrow * kNarrow; n > 0 && k >= 0; k -= kNarrow) {
    if (!apply(reflections(k), false, product.from(k, 0), scratch)) return false;
  }
  for (int64_t r = 1; r < a.rows; ++r) std::fill(a[r], a[r] + std::min(r, a.columns), 0.0);
  return true;
}

void set_identity(const Matrix& m) {
  std::fill(m.data, m.data + m.rows * m.columns, 0.0);
  for (int64_t i = 0; i < std::min(m.rows, m.columns); ++i) m[i][i] = 1;
}

bool complete_basis(const Matrix& u, int64_t known, double* copy, cpu::Scratch& scratch) {
  if (known == u.columns) return true;
  const Matrix r{copy, u.rows, known};
  for (int64_t i = 0; i < u.rows; ++i) std::copy(u[i], u[i] + known, r[i]);
  set_identity(u);
  // r is diagonal: its columns were orthogonal, of length 1
  if (!factor_qr(r, u, scratch)) return false;
  for (int64_t i = 0; i < u.rows; ++i) {
    for (int64_t k = 0; k < known; ++k) u[i][k] *= r[k][k];
  }
  return true;
}

}  // namespace torch::executor::native::internal
