#include <executorch/kernels/portable/internal/factor.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

void factor_qr(const Matrix& a, const Matrix& q, double* v) {
  const int64_t n = std::min(a.rows, a.columns);
  for (int64_t k = 0; k < n; ++k) {  // v of each reflection is kept below the diagonal of a
    double below = 0;
    for (int64_t r = k + 1; r < a.rows; ++r) below += a[r][k] * a[r][k];
    v[k] = 0;  // the scale of the reflection
    if (below == 0) continue;
    const double alpha = a[k][k], beta = -std::copysign(std::sqrt(alpha * alpha + below), alpha);
    v[k] = (beta - alpha) / beta;
    for (int64_t r = k + 1; r < a.rows; ++r) a[r][k] /= alpha - beta;
    a[k][k] = beta;
    for (int64_t c = k + 1; c < a.columns; ++c) {
      double dot = a[k][c];
      for (int64_t r = k + 1; r < a.rows; ++r) dot += a[r][k] * a[r][c];
      dot *= v[k];
      a[k][c] -= dot;
      for (int64_t r = k + 1; r < a.rows; ++r) a[r][c] -= dot * a[r][k];
    }
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    for (int64_t c = 0; c < q.columns; ++c) {
      double dot = q[k][c];
      for (int64_t r = k + 1; r < a.rows; ++r) dot += a[r][k] * q[r][c];
      dot *= v[k];
      q[k][c] -= dot;
      for (int64_t r = k + 1; r < a.rows; ++r) q[r][c] -= dot * a[r][k];
    }
  }
  for (int64_t r = 1; r < a.rows; ++r) std::fill(a[r], a[r] + std::min(r, a.columns), 0.0);
}

void set_identity(const Matrix& m) {
  std::fill(m.data, m.data + m.rows * m.columns, 0.0);
  for (int64_t i = 0; i < std::min(m.rows, m.columns); ++i) m[i][i] = 1;
}

void orthogonalize(const Matrix& u, const Matrix& v) {
  // What rounding leaves of the product of long columns does not get smaller.
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double small = std::max(1e-15, kEpsilon * std::sqrt(static_cast<double>(u.rows)));
  const auto rotate = [](const Matrix& m, int64_t p, int64_t q, double c, double s) {
    for (int64_t r = 0; r < m.rows; ++r) {
      const double x = m[r][p], y = m[r][q];
      m[r][p] = c * x - s * y;
      m[r][q] = s * x + c * y;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool done = true;
    for (int64_t p = 0; p < u.columns; ++p) {
      for (int64_t q = p + 1; q < u.columns; ++q) {
        double aa = 0, bb = 0, ab = 0;
        for (int64_t r = 0; r < u.rows; ++r) {
          aa += u[r][p] * u[r][p];
          bb += u[r][q] * u[r][q];
          ab += u[r][p] * u[r][q];
        }
        if (!(std::fabs(ab) > small * std::sqrt(aa * bb)) || ab == 0) continue;
        done = false;
        const double tau = (bb - aa) / (2 * ab);
        const double t = std::copysign(1 / (std::fabs(tau) + std::hypot(1.0, tau)), tau);
        const double c = 1 / std::hypot(1.0, t);
        rotate(u, p, q, c, c * t);
        rotate(v, p, q, c, c * t);
      }
    }
    if (done) return;
  }
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

void diagonalize(const Matrix& a, const Matrix& v) {
  const int64_t n = a.rows;
  double last = INFINITY;
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, all = 0;
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) (r == c ? all : off) += a[r][c] * a[r][c];
    }
    // Rotations only make it smaller, until it is what rounding adds.
    if (!(off > 1e-32 * (all + off)) || !(off < last)) return;
    last = off;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const double tau = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = std::copysign(1 / (std::fabs(tau) + std::hypot(1.0, tau)), tau);
        const double c = 1 / std::hypot(1.0, t), s = c * t;
        for (int64_t r = 0; r < n; ++r) {
          const double x = a[r][p], y = a[r][q];
          a[r][p] = c * x - s * y;
          a[r][q] = s * x + c * y;
        }
        for (int64_t r = 0; r < n; ++r) {
          const double x = a[p][r], y = a[q][r];
          a[p][r] = c * x - s * y;
          a[q][r] = s * x + c * y;
          const double vx = v[r][p], vy = v[r][q];
          v[r][p] = c * vx - s * vy;
          v[r][q] = s * vx + c * vy;
        }
      }
    }
  }
}

}  // namespace torch::executor::native::internal
