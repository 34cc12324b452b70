/// Factorizations of small and large matrices in double, and systems solved with them.
///
/// Golub and Van Loan, Matrix Computations, 4th edition: 3.2 (LU), 4.2 (Cholesky), 5.1 and 5.2
/// (reflections, several of them as one product). Matrices are divided recursively until blocks are
/// narrow; updates of one block by another are matrix products of the engine. Functions that take
/// `scratch` return false, with unfinished results, if that memory is refused.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace torch::executor::native::internal {

/// A dense matrix, row after row.
struct Matrix {
  double* data = nullptr;
  int64_t rows = 0, columns = 0;
  double* operator[](int64_t row) const { return data + row * columns; }
};

/// a = P L U in place; pivots[i] is the row swapped with row i, from 1. `info` becomes 1 + the
/// place of the first pivot that is zero, or 0.
[[nodiscard]] bool factor_lu(const Matrix& a, double* pivots, int64_t& info,
                             executorch::cpu::Scratch& scratch);

/// b = t^-1 b, for a triangular t.
[[nodiscard]] bool solve_triangle(const Matrix& t, bool upper, bool unit, const Matrix& b,
                                  executorch::cpu::Scratch& scratch);

/// b = (P L U)^-1 b.
[[nodiscard]] bool solve_lu(const Matrix& lu, const double* pivots, const Matrix& b,
                            executorch::cpu::Scratch& scratch);

/// a = L L^T, L in place below the diagonal, zeros above; reads nothing above the diagonal. `info`
/// as factor_lu for a that is not positive, whose numbers are then of no particular value.
[[nodiscard]] bool factor_cholesky(const Matrix& a, int64_t& info,
                                   executorch::cpu::Scratch& scratch);

/// a becomes R, q (a.rows square or wide) is multiplied by the reflections from the left, last
/// first: begun with ones on its diagonal it becomes Q.
[[nodiscard]] bool factor_qr(const Matrix& a, const Matrix& q, executorch::cpu::Scratch& scratch);

/// Makes the columns of u from `known` on orthogonal, of length 1, and orthogonal to the columns
/// before, which are so already. `copy` has room for u.rows * known numbers. Cost: 4 * u.rows *
/// u.columns * known.
[[nodiscard]] bool complete_basis(const Matrix& u, int64_t known, double* copy,
                                  executorch::cpu::Scratch& scratch);

/// Sets m to the identity: ones on the diagonal, zeros elsewhere.
void set_identity(const Matrix& m);

}  // namespace torch::executor::native::internal
