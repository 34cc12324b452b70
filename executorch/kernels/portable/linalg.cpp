#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/eigen.h>
#include <executorch/kernels/portable/internal/matrices.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

// Factorizations of small matrices and systems solved with them, one matrix of a batch after
// another. All is computed in double, in temporary memory; signs and pivots are LAPACK's where it
// fixes them.
namespace torch::executor::native {

using namespace internal;

namespace {

/// Fails if `wanted`, the operator's argument check_errors, is true and `info`, as factor_lu()
/// gives it, reports a bad pivot of matrix i.
bool check_info(KernelRuntimeContext& ctx, const char* op, bool wanted, int64_t info, int64_t i) {
  ET_REQUIRE(ctx, !wanted || info == 0, InvalidArgument, false,
             "%s: matrix %" PRId64 " of the batch is singular or not positive: pivot %" PRId64, op,
             i, info);
  return true;
}

/// to = from, or its transpose.
void copy(const Matrix& from, bool transposed, const Matrix& to) {
  for (int64_t r = 0; r < to.rows; ++r) {
    for (int64_t c = 0; c < to.columns; ++c) to[r][c] = transposed ? from[c][r] : from[r][c];
  }
}

/// shape_like() of what is `wanted`; what is not has one dim of size 0.
bool shape_if(bool wanted, KernelRuntimeContext& ctx, const char* op, const Tensor& t,
              std::initializer_list<int64_t> inner, Tensor& out) {
  return wanted ? shape_like(ctx, op, t, inner, out) : resize_out(ctx, op, out, Shape{0});
}

double parity(const double* pivots, int64_t n) {
  double sign = 1;
  for (int64_t k = 0; k < n; ++k) {
    if (static_cast<int64_t>(pivots[k]) != k + 1) sign = -sign;
  }
  return sign;
}

}  // namespace

TensorPair linalg_cholesky_ex_L(KernelRuntimeContext& ctx, const Tensor& self, bool upper,
                                bool check_errors, Tensor& L, Tensor& info) {
  constexpr const char* kOp = "linalg_cholesky_ex.L";
  const TensorPair result(L, info);
  if (!require_matrices(ctx, kOp, self, true)) return result;
  const Batch from{self, 2}, to{L, 2}, infos{info, 0};
  const int64_t n = from.rows();
  if (!shape_like(ctx, kOp, self, {n, n}, L) || !shape_like(ctx, kOp, self, {}, info) ||
      are_empty({&L, &info})) {
    return result;
  }
  Workspace space{ctx, kOp};
  const Matrix a = space.matrix(n, n);
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    if (upper) {  // the upper triangle is the one that is read
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < r; ++c) a[r][c] = a[c][r];
      }
    }
    int64_t failed = 0;
    if (!space.require(factor_cholesky(a, failed, space.scratch))) return result;
    if (upper) transpose(a);
    if (!check_info(ctx, kOp, check_errors, failed, i)) return result;
    to.write(i, a);
    infos.write_number(i, static_cast<double>(failed));
  }
  return result;
}

namespace {

/// LU and pivots of each matrix of A (or its transpose) into their tensors;
/// `then(i, lu, pivots, info)` goes on, for a `result` of one number for each.
template <class Then>
void with_lu(Workspace& space, const Tensor& A, bool transposed, Tensor& LU, Tensor& pivots,
             const Tensor& result, const Then& then) {
  const Batch from{A, 2};
  const int64_t rows = from.rows(), columns = from.columns(), n = std::min(rows, columns);
  if (!shape_like(space.ctx, space.op, A, {rows, columns}, LU) ||
      !shape_like(space.ctx, space.op, A, {n}, pivots) || are_empty({&A, &result})) {
    return;
  }
  const Batch lus{LU, 2}, swaps{pivots, 1};
  const Matrix a = space.matrix(rows, columns), p = space.matrix(1, n);
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    if (transposed) transpose(a);
    int64_t info = 0;
    if (!space.require(factor_lu(a, p.data, info, space.scratch))) return;
    lus.write(i, a);
    swaps.write(i, p);
    if (!then(i, a, p.data, info)) return;
  }
}

}  // namespace

TensorTriple linalg_lu_factor_ex_out(KernelRuntimeContext& ctx, const Tensor& A, bool pivot,
                                     bool check_errors, Tensor& LU, Tensor& pivots, Tensor& info) {
  constexpr const char* kOp = "linalg_lu_factor_ex.out";
  const TensorTriple result(LU, pivots, info);
  ET_REQUIRE(ctx, pivot, NotSupported, result, "%s: without pivoting is not implemented", kOp);
  if (!require_matrices(ctx, kOp, A, false) || !shape_like(ctx, kOp, A, {}, info)) return result;
  Workspace space{ctx, kOp};
  with_lu(space, A, false, LU, pivots, info,
          [&](int64_t i, const Matrix&, const double*, int64_t failed) {
            Batch{info, 0}.write_number(i, static_cast<double>(failed));
            return check_info(ctx, kOp, check_errors, failed, i);
          });
  return result;
}

TensorTriple _linalg_det_result(KernelRuntimeContext& ctx, const Tensor& A, Tensor& value,
                                Tensor& LU, Tensor& pivots) {
  constexpr const char* kOp = "_linalg_det.result";
  const TensorTriple result(value, LU, pivots);
  if (!require_matrices(ctx, kOp, A, true) || !shape_like(ctx, kOp, A, {}, value)) return result;
  Workspace space{ctx, kOp};
  // As eager, whose matrices lie in columns: the transpose has the same determinant.
  with_lu(space, A, is_contiguous(A), LU, pivots, value,
          [&](int64_t i, const Matrix& lu, const double* swaps, int64_t) {
            double product = parity(swaps, lu.rows);
            for (int64_t k = 0; k < lu.rows; ++k) product *= lu[k][k];
            Batch{value, 0}.write_number(i, product);
            return true;
          });
  return result;
}

TensorQuadruple _linalg_slogdet_sign(KernelRuntimeContext& ctx, const Tensor& A, Tensor& sign,
                                     Tensor& logabsdet, Tensor& LU, Tensor& pivots) {
  constexpr const char* kOp = "_linalg_slogdet.sign";
  const TensorQuadruple result(sign, logabsdet, LU, pivots);
  if (!require_matrices(ctx, kOp, A, true) || !shape_like(ctx, kOp, A, {}, sign) ||
      !shape_like(ctx, kOp, A, {}, logabsdet)) {
    return result;
  }
  Workspace space{ctx, kOp};
  with_lu(space, A, is_contiguous(A), LU, pivots, sign,
          [&](int64_t i, const Matrix& lu, const double* swaps, int64_t) {
            double total = 0, s = parity(swaps, lu.rows);
            for (int64_t k = 0; k < lu.rows; ++k) {
              total += std::log(std::fabs(lu[k][k]));
              s *= lu[k][k] > 0 ? 1 : lu[k][k] < 0 ? -1 : lu[k][k];
            }
            Batch{sign, 0}.write_number(i, s);
            Batch{logabsdet, 0}.write_number(i, total);
            return true;
          });
  return result;
}

TensorPair linalg_inv_ex_inverse(KernelRuntimeContext& ctx, const Tensor& A, bool check_errors,
                                 Tensor& inverse, Tensor& info) {
  constexpr const char* kOp = "linalg_inv_ex.inverse";
  const TensorPair result(inverse, info);
  if (!require_matrices(ctx, kOp, A, true)) return result;
  const Batch from{A, 2}, to{inverse, 2}, infos{info, 0};
  const int64_t n = from.rows();
  if (!shape_like(ctx, kOp, A, {n, n}, inverse) || !shape_like(ctx, kOp, A, {}, info) ||
      are_empty({&inverse, &info})) {
    return result;
  }
  Workspace space{ctx, kOp};
  const Matrix a = space.matrix(n, n), x = space.matrix(n, n), pivots = space.matrix(1, n);
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    int64_t failed = 0;
    if (!space.require(factor_lu(a, pivots.data, failed, space.scratch)) ||
        !check_info(ctx, kOp, check_errors, failed, i)) {
      return result;
    }
    set_identity(x);
    if (!space.require(solve_lu(a, pivots.data, x, space.scratch))) return result;
    to.write(i, x);
    infos.write_number(i, static_cast<double>(failed));
  }
  return result;
}

TensorQuadruple _linalg_solve_ex_result(KernelRuntimeContext& ctx, const Tensor& A, const Tensor& B,
                                        bool left, bool check_errors, Tensor& X, Tensor& LU,
                                        Tensor& pivots, Tensor& info) {
  constexpr const char* kOp = "_linalg_solve_ex.result";
  const TensorQuadruple result(X, LU, pivots, info);
  if (!require_matrices(ctx, kOp, A, true) || !shape_like(ctx, kOp, A, {}, info)) return result;
  bool vectors = B.dim() == 1 || B.dim() == A.dim() - 1;
  for (int64_t d = 0; vectors && d < A.dim() - 1; ++d) {
    vectors = B.dim() == 1 ? B.size(0) == A.size(A.dim() - 1) : B.size(d) == A.size(d);
  }
  ET_REQUIRE(ctx, is_float(B.scalar_type()) && (vectors || B.dim() >= 2), InvalidArgument, result,
             "%s: a %s tensor of shape %s is no right side for matrices %s", kOp,
             toString(B.scalar_type()), ShapeText(B).c_str(), ShapeText(A).c_str());
  const Batch matrices{A, 2}, right{B, vectors ? 1 : 2}, to{X, vectors ? 1 : 2};
  const int64_t n = matrices.rows(), other = vectors ? 1 : left ? right.columns() : right.rows();
  const int64_t meets = vectors || !left ? right.columns() : right.rows();
  ET_REQUIRE(ctx, meets == n, InvalidArgument, result, "%s: shapes %s and %s do not fit", kOp,
             ShapeText(A).c_str(), ShapeText(B).c_str());
  Shape shape;
  if (!broadcast_batches(ctx, kOp, matrices, right, shape)) return result;
  if (!vectors) shape.push(left ? n : other);
  shape.push(vectors || !left ? n : other);
  if (!resize_out(ctx, kOp, X, shape)) return result;
  Workspace space{ctx, kOp};
  with_lu(space, A, false, LU, pivots, info,
          [&](int64_t i, const Matrix&, const double*, int64_t failed) {
            Batch{info, 0}.write_number(i, static_cast<double>(failed));
            return check_info(ctx, kOp, check_errors, failed, i);
          });
  if (X.numel() == 0 || ctx.failure_state() != Error::Ok) return result;
  const Matrix a = space.matrix(n, n),
               b = space.matrix(vectors || !left ? other : n, vectors || !left ? n : other);
  const Matrix x = space.matrix(n, other), swaps = space.matrix(1, n);
  for (int64_t i = 0; space.ok && i < to.count(); ++i) {
    matrices.read(i, to, a);
    right.read(i, to, b);
    const bool transposed = vectors || !left;  // x A = b is A^T x^T = b^T
    if (!left) transpose(a);
    copy(b, transposed, x);
    int64_t failed = 0;
    if (!space.require(factor_lu(a, swaps.data, failed, space.scratch) &&
                       solve_lu(a, swaps.data, x, space.scratch))) {
      return result;
    }
    copy(x, transposed, b);
    to.write(i, b);
  }
  return result;
}

Tensor& linalg_solve_triangular_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& B,
                                    bool upper, bool left, bool unitriangular, Tensor& out) {
  constexpr const char* kOp = "linalg_solve_triangular.out";
  if (!require_matrices(ctx, kOp, self, true) || !require_matrices(ctx, kOp, B, false)) return out;
  const Batch triangles{self, 2}, right{B, 2}, to{out, 2};
  const int64_t n = triangles.rows(), rows = right.rows(), columns = right.columns();
  ET_REQUIRE(ctx, (left ? rows : columns) == n, InvalidArgument, out,
             "%s: shapes %s and %s do not fit", kOp, ShapeText(self).c_str(), ShapeText(B).c_str());
  Shape shape;
  if (!broadcast_batches(ctx, kOp, triangles, right, shape)) return out;
  shape.push(rows);
  shape.push(columns);
  if (!resize_out(ctx, kOp, out, shape) || out.numel() == 0) return out;
  Workspace space{ctx, kOp};
  const Matrix a = space.matrix(n, n), b = space.matrix(rows, columns);
  const Matrix x = space.matrix(n, left ? columns : rows);
  for (int64_t i = 0; space.ok && i < to.count(); ++i) {
    triangles.read(i, to, a);
    right.read(i, to, b);
    if (!left) {  // x A = b is A^T x^T = b^T
      transpose(a);
      copy(b, true, x);
    }
    const Matrix& solved = left ? b : x;
    if (!space.require(solve_triangle(a, upper == left, unitriangular, solved, space.scratch))) {
      return out;
    }
    if (!left) copy(x, true, b);
    to.write(i, b);
  }
  return out;
}

TensorPair linalg_qr_out(KernelRuntimeContext& ctx, const Tensor& A, std::string_view mode,
                         Tensor& Q, Tensor& R) {
  constexpr const char* kOp = "linalg_qr.out";
  const TensorPair result(Q, R);
  ET_REQUIRE(ctx, mode == "reduced" || mode == "complete" || mode == "r", InvalidArgument, result,
             "%s: mode is '%.*s', expected 'reduced', 'complete' or 'r'", kOp,
             static_cast<int>(mode.size()), mode.data());
  if (!require_matrices(ctx, kOp, A, false)) return result;
  const Batch from{A, 2}, qs{Q, 2}, rs{R, 2};
  const int64_t rows = from.rows(), columns = from.columns();
  const int64_t n = mode == "complete" ? rows : std::min(rows, columns);
  if (!shape_if(mode != "r", ctx, kOp, A, {rows, n}, Q) ||
      !shape_like(ctx, kOp, A, {n, columns}, R) || are_empty({&Q, &R})) {
    return result;
  }
  Workspace space{ctx, kOp};
  const Matrix a = space.matrix(rows, columns), q = space.matrix(rows, n);
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    set_identity(q);
    if (!space.require(factor_qr(a, q, space.scratch))) return result;
    if (mode != "r") qs.write(i, q);
    rs.write(i, {a.data, n, columns});
  }
  return result;
}

TensorPair _linalg_eigh_eigenvalues(KernelRuntimeContext& ctx, const Tensor& A,
                                    std::string_view UPLO, bool compute_v, Tensor& eigenvalues,
                                    Tensor& eigenvectors) {
  constexpr const char* kOp = "_linalg_eigh.eigenvalues";
  const TensorPair result(eigenvalues, eigenvectors);
  if (!require_matrices(ctx, kOp, A, true)) return result;
  const Batch from{A, 2}, values{eigenvalues, 1}, vectors{eigenvectors, 2};
  const int64_t n = from.rows();
  if (!shape_like(ctx, kOp, A, {n}, eigenvalues) ||
      !shape_if(compute_v, ctx, kOp, A, {n, n}, eigenvectors) || eigenvalues.numel() == 0) {
    return result;
  }
  const bool lower = !UPLO.empty() && (UPLO[0] == 'L' || UPLO[0] == 'l');
  Workspace space{ctx, kOp};
  const Matrix a = space.matrix(n, n), w = space.matrix(3, n);
  const Matrix sorted_values{w.data, 1, n};
  Matrix v, sorted;
  if (compute_v) {
    v = space.matrix(n, n);
    sorted = space.matrix(n, n);
  }
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < r; ++c) (lower ? a[c][r] : a[r][c]) = lower ? a[r][c] : a[c][r];
    }
    find_eigenvalues(a, w.data, v, w.data + n);
    for (int64_t k = 0; k < n; ++k) {  // by size, smallest first
      const int64_t best = std::min_element(w.data + k, w.data + n) - w.data;
      std::swap(w.data[k], w.data[best]);
      if (compute_v && best != k) std::swap_ranges(v[k], v[k] + n, v[best]);
    }
    values.write(i, sorted_values);
    if (!compute_v) continue;
    copy(v, true, sorted);
    vectors.write(i, sorted);
  }
  return result;
}

namespace {

/// Lengths of the rows of u, which are sorted by them, largest first, and with them those of v,
/// unless it has no data.
void sort_by_length(const Matrix& u, const Matrix& v, double* lengths) {
  const int64_t n = u.rows, m = u.columns;
  for (int64_t k = 0; k < n; ++k) {
    double sum = 0;
    for (int64_t r = 0; r < m; ++r) sum += u[k][r] * u[k][r];
    lengths[k] = std::sqrt(sum);
  }
  for (int64_t k = 0; k < n; ++k) {
    const int64_t best = std::max_element(lengths + k, lengths + n) - lengths;
    if (best == k) continue;
    std::swap(lengths[k], lengths[best]);
    std::swap_ranges(u[k], u[k] + m, u[best]);
    if (v.data != nullptr) std::swap_ranges(v[k], v[k] + n, v[best]);
  }
}

/// Rows of u by their sorted lengths as the first columns of `basis`; how many are more than
/// rounding.
int64_t read_directions(const Matrix& u, const double* lengths, const Matrix& basis) {
  for (int64_t k = 0; k < u.rows; ++k) {
    if (!(lengths[k] > 1e-15 * lengths[0])) return k;
    for (int64_t r = 0; r < u.columns; ++r) basis[r][k] = u[k][r] / lengths[k];
  }
  return u.rows;
}

}  // namespace

TensorTriple _linalg_svd_U(KernelRuntimeContext& ctx, const Tensor& A, bool full_matrices,
                           bool compute_uv, std::optional<std::string_view> driver, Tensor& U,
                           Tensor& S, Tensor& Vh) {
  constexpr const char* kOp = "_linalg_svd.U";
  (void)driver;  // of other devices
  const TensorTriple result(U, S, Vh);
  if (!require_matrices(ctx, kOp, A, false)) return result;
  const Batch from{A, 2};
  const int64_t rows = from.rows(), columns = from.columns(), n = std::min(rows, columns);
  const int64_t left = full_matrices ? rows : n, right = full_matrices ? columns : n;
  if (!shape_like(ctx, kOp, A, {n}, S) || !shape_if(compute_uv, ctx, kOp, A, {rows, left}, U) ||
      !shape_if(compute_uv, ctx, kOp, A, {right, columns}, Vh) || are_empty({&U, &S, &Vh})) {
    return result;
  }
  // The matrix, or its transpose if that is the one that is not wider than high, is decomposed:
  // high = long_ * S * short_^T.
  const bool transposed = columns > rows;
  const int64_t m = std::max(rows, columns);
  Workspace space{ctx, kOp};
  // Rows of u and v are columns of long_ * S and short_.
  const Matrix a = space.matrix(rows, columns), u = space.matrix(n, m), s = space.matrix(1, n);
  const Matrix gram = space.matrix(n, n), turn = space.matrix(n, n), room = space.matrix(3, n);
  Matrix v, basis, u_out, v_out;
  if (compute_uv) {
    v = space.matrix(n, n);
    basis = space.matrix(m, full_matrices ? m : n);
    u_out = space.matrix(rows, left);
    v_out = space.matrix(right, columns);
  }
  for (int64_t i = 0; space.ok && i < from.count(); ++i) {
    from.read(i, from, a);
    copy(a, !transposed, u);
    if (compute_uv) set_identity(v);
    orthogonalize(u, v, gram, turn, room.data);
    sort_by_length(u, v, s.data);
    Batch{S, 1}.write(i, s);
    if (!compute_uv) continue;
    const int64_t rank = read_directions(u, s.data, basis);
    // u is not read again
    if (!space.require(complete_basis(basis, rank, u.data, space.scratch))) return result;
    copy(transposed ? v : basis, transposed, u_out);
    copy(transposed ? basis : v, transposed, v_out);
    Batch{U, 2}.write(i, u_out);
    Batch{Vh, 2}.write(i, v_out);
  }
  return result;
}

namespace {
constexpr Kernel kLinalgOps[] = {
    ET_OP("aten::_linalg_det.result", _linalg_det_result),
    ET_OP("aten::_linalg_eigh.eigenvalues", _linalg_eigh_eigenvalues),
    ET_OP("aten::_linalg_slogdet.sign", _linalg_slogdet_sign),
    ET_OP("aten::_linalg_solve_ex.result", _linalg_solve_ex_result),
    ET_OP("aten::_linalg_svd.U", _linalg_svd_U),
    ET_OP("aten::linalg_cholesky_ex.L", linalg_cholesky_ex_L),
    ET_OP("aten::linalg_inv_ex.inverse", linalg_inv_ex_inverse),
    ET_OP("aten::linalg_lu_factor_ex.out", linalg_lu_factor_ex_out),
    ET_OP("aten::linalg_qr.out", linalg_qr_out),
    ET_OP("aten::linalg_solve_triangular.out", linalg_solve_triangular_out),
};
}  // namespace

Span<const Kernel> linalg_ops() {
  return kLinalgOps;
}

}  // namespace torch::executor::native
