/// Eigenvalues of symmetric matrices and singular values of any, in double.
///
/// Golub and Van Loan, Matrix Computations, 4th edition: 8.3 (tridiagonal form, implicit QR steps),
/// 8.6.3 (one-sided rotations).
#pragma once

#include <executorch/kernels/portable/internal/factor.h>

namespace torch::executor::native::internal {

/// Computes the eigenvalues of the symmetric matrix a[n,n], in no particular order, and, unless
/// `vectors` has no data, the eigenvectors, of length 1, as the rows of `vectors`. Overwrites a.
///   space  room for 2 * n numbers
/// Cost: 2 n^3 for the values alone, some 10 n^3 with vectors.
void find_eigenvalues(const Matrix& a, double* values, const Matrix& vectors, double* space);

/// Rotates the n rows of u[n,m], n <= m, until they are orthogonal. Their lengths are then the
/// singular values of the original u, up to rounding errors relative to the largest one. Unless v
/// has no data, its n rows are rotated likewise.
///   gram, basis  room for [n,n] each;  space  room for 3 * n numbers
/// Large matrices are first multiplied by the eigenvectors of u u^T, so that few rotations are
/// left. Cost: some 15 n^3 + 3 m n^2.
void orthogonalize(const Matrix& u, const Matrix& v, const Matrix& gram, const Matrix& basis,
                   double* space);

}  // namespace torch::executor::native::internal
