/// Batches of matrices in tensors, and temporary ones to compute with.
#pragma once

#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/factor.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <initializer_list>

namespace torch::executor::native::internal {

/// Temporary matrices of one call, and the memory of factorizations; `ok` is false once memory ran
/// out, or a size that no memory has was asked for.
struct Workspace {
  KernelRuntimeContext& ctx;
  const char* op;
  bool ok = true;
  EngineScratch scratch{ctx};

  Matrix matrix(int64_t rows, int64_t columns);
  /// What a factorization returned: false, and reported, if it was refused memory.
  bool require(bool granted) { return ok = require_scratch(ctx, op, granted); }
};

/// Whether there is nothing to compute. Extents beside one of zero may be of any size: what loops
/// over them asks first.
inline bool are_empty(std::initializer_list<const Tensor*> outs) {
  for (const Tensor* out : outs) {
    if (out->numel() > 0) return false;
  }
  return true;
}

/// The matrices (or, of fewer `inner` dims, vectors and numbers) that the last dims of a tensor
/// are.
struct Batch {
  const Tensor& t;
  int64_t inner;

  int64_t outer() const { return t.dim() - inner; }
  int64_t rows() const { return inner > 1 ? t.size(t.dim() - 2) : 1; }
  int64_t columns() const { return inner > 0 ? t.size(t.dim() - 1) : 1; }
  /// Of a tensor with elements, or with as many items as something with elements.
  int64_t count() const;
  int64_t stride(int64_t d) const { return t.strides()[static_cast<size_t>(d)]; }
  /// Of item `i` of the batches of `whole`, to which those of this broadcast.
  int64_t offset(int64_t i, const Batch& whole) const;
  void read(int64_t i, const Batch& whole, const Matrix& m) const;
  void write(int64_t i, const Matrix& m) const;
  void write_number(int64_t i, double value) const { write(i, {&value, 1, 1}); }
};

/// Whether t holds floating (and, if so asked, square) matrices; else reports that.
bool require_matrices(KernelRuntimeContext& ctx, const char* op, const Tensor& t, bool square);

/// The outer dims of both, broadcast, into `shape`, which is empty; else reports them.
bool broadcast_batches(KernelRuntimeContext& ctx, const char* op, const Batch& a, const Batch& b,
                       Shape& shape);

/// `out` in the shape of the batches of `t` with these last dims.
bool shape_like(KernelRuntimeContext& ctx, const char* op, const Tensor& t,
                std::initializer_list<int64_t> inner, Tensor& out);

/// Of a square matrix, in place.
void transpose(const Matrix& a);

}  // namespace torch::executor::native::internal
