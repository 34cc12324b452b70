#include <executorch/kernels/portable/internal/factor.h>

#include <algorithm>
#include <cmath>

namespace torch::executor::native::internal {

int64_t factor_lu(const Matrix& a, double* pivots) {
  int64_t info = 0;
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < a.rows; ++r) {
      if (std::fabs(a[r][k]) > std::fabs(a[best][k])) best = r;
    }
    pivots[k] = static_cast<double>(best + 1);
    if (a[best][k] == 0) {
      if (info == 0) info = k + 1;
      continue;
    }
    if (best != k) std::swap_ranges(a[k], a[k] + a.columns, a[best]);
    for (int64_t r = k + 1; r < a.rows; ++r) {
      const double factor = a[r][k] /= a[k][k];
      for (int64_t c = k + 1; c < a.columns; ++c) a[r][c] -= factor * a[k][c];
    }
  }
  return info;
}

void solve_triangle(const Matrix& t, bool upper, bool unit, const Matrix& b) {
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t r = upper ? t.rows - 1 - i : i;
    for (int64_t k = upper ? r + 1 : 0; k < (upper ? t.rows : r); ++k) {
      for (int64_t c = 0; c < b.columns; ++c) b[r][c] -= t[r][k] * b[k][c];
    }
    for (int64_t c = 0; !unit && c < b.columns; ++c) b[r][c] /= t[r][r];
  }
}

void solve_lu(const Matrix& lu, const double* pivots, const Matrix& b) {
  for (int64_t k = 0; k < lu.rows; ++k) {
    const int64_t other = static_cast<int64_t>(pivots[k]) - 1;
    if (other != k) std::swap_ranges(b[k], b[k] + b.columns, b[other]);
  }
  solve_triangle(lu, false, true, b);
  solve_triangle(lu, true, false, b);
}

int64_t factor_cholesky(const Matrix& a) {
  for (int64_t k = 0; k < a.rows; ++k) {
    double rest = a[k][k];
    for (int64_t j = 0; j < k; ++j) rest -= a[k][j] * a[k][j];
    if (!(rest > 0)) return k + 1;
    a[k][k] = std::sqrt(rest);
    for (int64_t r = k + 1; r < a.rows; ++r) {
      double sum = a[r][k];
      for (int64_t j = 0; j < k; ++j) sum -= a[r][j] * a[k][j];
      a[r][k] = sum / a[k][k];
    }
    std::fill(a[k] + k + 1, a[k] + a.columns, 0.0);
  }
  return 0;
}

namespace {

/// Rows of m from k on are reflected by the vector (1, column k of a below row k) of scale `scale`;
/// columns of m from `first` on. `dots` has room for m.columns.
void reflect(const Matrix& a, int64_t k, double scale, const Matrix& m, int64_t first,
             double* dots) {
  std::copy(m[k] + first, m[k] + m.columns, dots);
  for (int64_t r = k + 1; r < a.rows; ++r) {
    const double factor = a[r][k];
    for (int64_t c = first; c < m.columns; ++c) dots[c - first] += factor * m[r][c];
  }
  for (int64_t c = first; c < m.columns; ++c) m[k][c] -= dots[c - first] *= scale;
  for (int64_t r = k + 1; r < a.rows; ++r) {
    const double factor = a[r][k];
    for (int64_t c = first; c < m.columns; ++c) m[r][c] -= factor * dots[c - first];
  }
}

}  // namespace

void factor_qr(const Matrix& a, const Matrix& q, double* v) {
  const int64_t n = std::min(a.rows, a.columns);
  double* const dots = v + n;
  for (int64_t k = 0; k < n; ++k) {  // v of each reflection is kept below the diagonal of a
    double below = 0;
    for (int64_t r = k + 1; r < a.rows; ++r) below += a[r][k] * a[r][k];
    v[k] = 0;  // the scale of the reflection
    if (below == 0) continue;
    const double alpha = a[k][k], beta = -std::copysign(std::sqrt(alpha * alpha + below), alpha);
    v[k] = (beta - alpha) / beta;
    for (int64_t r = k + 1; r < a.rows; ++r) a[r][k] /= alpha - beta;
    a[k][k] = beta;
    reflect(a, k, v[k], a, k + 1, dots);
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    if (v[k] != 0) reflect(a, k, v[k], q, 0, dots);
  }
  for (int64_t r = 1; r < a.rows; ++r) std::fill(a[r], a[r] + std::min(r, a.columns), 0.0);
}

void set_identity(const Matrix& m) {
  std::fill(m.data, m.data + m.rows * m.columns, 0.0);
  for (int64_t i = 0; i < std::min(m.rows, m.columns); ++i) m[i][i] = 1;
}

void complete_basis(const Matrix& u, int64_t known, double* copy, double* v) {
  if (known == u.columns) return;
  const Matrix r{copy, u.rows, known};
  for (int64_t i = 0; i < u.rows; ++i) std::copy(u[i], u[i] + known, r[i]);
  set_identity(u);
  factor_qr(r, u, v);  // r is diagonal: its columns were orthogonal, of length 1
  for (int64_t i = 0; i < u.rows; ++i) {
    for (int64_t k = 0; k < known; ++k) u[i][k] *= r[k][k];
  }
}

}  // namespace torch::executor::native::internal
