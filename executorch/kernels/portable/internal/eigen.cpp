#include <executorch/kernels/portable/internal/eigen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace torch::executor::native::internal {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// More steps than any matrix of finite numbers needs. A matrix with NaNs would never converge.
constexpr int kMaxSteps = 60;
// Matrices smaller than this need so few rotations that finding a basis that saves rotations costs
// more.
constexpr int64_t kMinPrepared = 24;

/// The dot product, in four independent sums, which do not wait for one another.
double dot(const double* a, const double* b, int64_t n) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int64_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// y += factor * x
void add_scaled(double* y, double factor, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

/// (x, y) = (c x + s y, c y - s x)
void rotate(double* x, double* y, int64_t n, double c, double s) {
  for (int64_t i = 0; i < n; ++i) {
    const double both = c * x[i] + s * y[i];
    y[i] = c * y[i] - s * x[i];
    x[i] = both;
  }
}

/// a = Q T Q^T: off[i] is what T has left of its diagonal, which a keeps. Row i of a keeps in front
/// of it the vector of the reflection of the first i coordinates, of which half the square is
/// halves[i]; 0: none.
void make_tridiagonal(const Matrix& a, double* off, double* halves, double* p) {
  off[0] = halves[0] = 0;
  for (int64_t i = a.rows - 1; i > 0; --i) {
    double* const u = a[i];
    double largest = 0;
    for (int64_t k = 0; k + 1 < i; ++k) largest = std::max(largest, std::fabs(u[k]));
    off[i] = u[i - 1];
    halves[i] = 0;
    if (largest == 0) continue;
    largest = std::max(largest, std::fabs(u[i - 1]));
    for (int64_t k = 0; k < i; ++k) u[k] /= largest;
    const double length = std::sqrt(dot(u, u, i)), last = u[i - 1];
    const double to = -std::copysign(length, last);
    off[i] = largest * to;
    u[i - 1] = last - to;
    const double half = halves[i] = length * length - last * to;
    for (int64_t j = 0; j < i; ++j) p[j] = dot(a[j], u, i) / half;
    add_scaled(p, -dot(p, u, i) / (2 * half), u, i);
    for (int64_t j = 0; j < i; ++j) {
      add_scaled(a[j], -u[j], p, i);
      add_scaled(a[j], -p[j], u, i);
    }
  }
}

/// The rows of `vectors` become the columns of Q.
void gather_reflections(const Matrix& a, const double* halves, const Matrix& vectors) {
  set_identity(vectors);
  for (int64_t i = 1; i < a.rows; ++i) {
    const double* const u = a[i];
    if (halves[i] == 0) continue;
    for (int64_t c = 0; c < i; ++c) {
      add_scaled(vectors[c], -dot(vectors[c], u, i) / halves[i], u, i);
    }
  }
}

/// One step towards a diagonal for rows first .. last of a tridiagonal matrix: `down[i]` is what it
/// has below d[i].
void implicit_step(double* d, double* down, int64_t first, int64_t last, const Matrix& vectors) {
  const double e = down[last - 1], delta = (d[last - 1] - d[last]) / 2;
  const double shift = d[last] - e * (e / (delta + std::copysign(std::hypot(delta, e), delta)));
  double x = d[first] - shift, z = down[first];
  for (int64_t k = first; k < last; ++k) {
    const double r = std::hypot(x, z), c = r == 0 ? 1 : x / r, s = r == 0 ? 0 : z / r;
    if (k > first) down[k - 1] = r;
    const double p = d[k], q = d[k + 1], w = down[k];
    d[k] = c * c * p + 2 * c * s * w + s * s * q;
    d[k + 1] = s * s * p - 2 * c * s * w + c * c * q;
    down[k] = c * s * (q - p) + (c * c - s * s) * w;
    if (k + 1 < last) {
      x = down[k];
      z = s * down[k + 1];
      down[k + 1] *= c;
    }
    if (vectors.data != nullptr) rotate(vectors[k], vectors[k + 1], vectors.columns, c, s);
  }
}

void diagonalize(double* d, double* down, int64_t n, const Matrix& vectors) {
  const auto is_small = [&](int64_t i) {
    return std::fabs(down[i]) <= kEpsilon * (std::fabs(d[i]) + std::fabs(d[i + 1]));
  };
  int steps = 0;
  for (int64_t last = n - 1; last > 0;) {
    if (is_small(last - 1) || steps == kMaxSteps) {
      --last;
      steps = 0;
      continue;
    }
    int64_t first = last - 1;
    while (first > 0 && !is_small(first - 1)) --first;
    implicit_step(d, down, first, last, vectors);
    ++steps;
  }
}

/// Rotates rows that are not orthogonal. False once none was left. Rows that are what rounding
/// leaves of the longest have no direction, and would be rotated for ever.
bool sweep(const Matrix& u, const Matrix& v, double small, double* squares) {
  bool rotated = false;
  double most = 0;
  for (int64_t p = 0; p < u.rows; ++p) {
    squares[p] = dot(u[p], u[p], u.columns);
    most = std::max(most, squares[p]);
  }
  const double least = most * (kEpsilon / 2) * (kEpsilon / 2);
  for (int64_t p = 0; p < u.rows; ++p) {
    for (int64_t q = p + 1; q < u.rows; ++q) {
      if (squares[p] <= least || squares[q] <= least) continue;
      const double product = dot(u[p], u[q], u.columns);
      if (!(std::fabs(product) > small * std::sqrt(squares[p] * squares[q])) || product == 0) {
        continue;
      }
      rotated = true;
      const double tau = (squares[q] - squares[p]) / (2 * product);
      const double t = std::copysign(1 / (std::fabs(tau) + std::hypot(1.0, tau)), tau);
      const double c = 1 / std::hypot(1.0, t);
      rotate(u[p], u[q], u.columns, c, -c * t);
      if (v.data != nullptr) rotate(v[p], v[q], v.columns, c, -c * t);
      squares[p] = dot(u[p], u[p], u.columns);
      squares[q] = dot(u[q], u[q], u.columns);
    }
  }
  return rotated;
}

/// m = basis m, column block by column block, through `copy` of m.rows numbers.
void multiply(const Matrix& basis, const Matrix& m, double* copy) {
  for (int64_t c = 0; c < m.columns; ++c) {
    for (int64_t r = 0; r < m.rows; ++r) copy[r] = m[r][c];
    for (int64_t r = 0; r < m.rows; ++r) m[r][c] = dot(basis[r], copy, m.rows);
  }
}

/// Multiplies u, and v, by the eigenvectors of u u^T.
void prepare(const Matrix& u, const Matrix& v, const Matrix& gram, const Matrix& basis,
             double* space) {
  const int64_t n = u.rows;
  double largest = 0;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < u.columns; ++c) largest = std::max(largest, std::fabs(u[r][c]));
  }
  // Squares of the rest are numbers, too.
  if (!(largest > 1e-140 && largest < 1e140)) return;
  double all = 0;
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c <= r; ++c) all += gram[r][c] = gram[c][r] = dot(u[r], u[c], u.columns);
  }
  if (!std::isfinite(all)) return;
  find_eigenvalues(gram, space + 2 * n, basis, space);
  multiply(basis, u, space);
  if (v.data != nullptr) multiply(basis, v, space);
}

}  // namespace

void find_eigenvalues(const Matrix& a, double* values, const Matrix& vectors, double* space) {
  const int64_t n = a.rows;
  double* const off = space;
  double* const halves = space + n;
  make_tridiagonal(a, off, halves, values);
  if (vectors.data != nullptr) gather_reflections(a, halves, vectors);
  for (int64_t i = 0; i < n; ++i) values[i] = a[i][i];
  diagonalize(values, off + 1, n, vectors);
}

void orthogonalize(const Matrix& u, const Matrix& v, const Matrix& gram, const Matrix& basis,
                   double* space) {
  // Rounding leaves products of long orthogonal rows that do not get smaller than this.
  const double small = std::max(1e-15, kEpsilon * std::sqrt(static_cast<double>(u.columns)));
  if (u.rows >= kMinPrepared) prepare(u, v, gram, basis, space);
  for (int i = 0; i < kMaxSteps && sweep(u, v, small, space); ++i) {
  }
}

}  // namespace torch::executor::native::internal
