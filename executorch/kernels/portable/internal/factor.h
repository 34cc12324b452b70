/// Factorizations of small matrices in double, and systems solved with them.
#pragma once

#include <cstdint>

namespace torch::executor::native::internal {

/// A dense matrix, row after row.
struct Matrix {
  double* data = nullptr;
  int64_t rows = 0, columns = 0;
  double* operator[](int64_t row) const { return data + row * columns; }
};

/// a = P L U in place; pivots[i] is the row swapped with row i. 1 + the place of the first pivot
/// that is zero, or 0.
int64_t factor_lu(const Matrix& a, double* pivots);

/// b = t^-1 b, for a triangular t.
void solve_triangle(const Matrix& t, bool upper, bool unit, const Matrix& b);

/// b = (P L U)^-1 b.
void solve_lu(const Matrix& lu, const double* pivots, const Matrix& b);

/// a = L L^T, L in place below the diagonal, zeros above; as factor_lu for a that is not positive.
int64_t factor_cholesky(const Matrix& a);

/// a becomes R, q (a.rows square or wide) is multiplied by the reflections from the left, last
/// first: begun with ones on its diagonal it becomes Q. `v` has room for min(a.rows, a.columns) +
/// max(a.columns, q.columns) numbers.
void factor_qr(const Matrix& a, const Matrix& q, double* v);

/// Columns from `known` on become orthogonal to those before and of length 1, which those are.
/// `copy` has room for u.rows * known numbers, `v` for known + u.columns. Cost: 4 * u.rows *
/// u.columns * known.
void complete_basis(const Matrix& u, int64_t known, double* copy, double* v);

/// Ones on the diagonal, zeros elsewhere.
void set_identity(const Matrix& m);

}  // namespace torch::executor::native::internal
