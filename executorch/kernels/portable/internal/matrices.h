/// Batches of matrices in tensors, and temporary ones to compute with.
#pragma once

#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/factor.h>
#include <executorch/kernels/portable/internal/shape.h>

#include <initializer_list>

namespace torch::executor::native::internal {

/// The temporary matrices of one call, and the scratch memory of factorizations. `ok` becomes false
/// when memory runs out or an impossible size is asked for.
struct Workspace {
  KernelRuntimeContext& ctx;
  const char* op;
  bool ok = true;
  EngineScratch scratch{ctx};

  Matrix matrix(int64_t rows, int64_t columns);
  /// Takes the result of a factorization. If that was refused memory, reports it and returns false.
  bool require(bool granted) { return ok = require_scratch(ctx, op, granted); }
};

/// Whether there is nothing to compute, because an extent is 0. The other extents may then be of
/// any size, so call this before looping over them.
inline bool are_empty(std::initializer_list<const Tensor*> outs) {
  for (const Tensor* out : outs) {
    if (out->numel() > 0) return false;
  }
  return true;
}

/// A tensor as a batch of items: matrices in its last two dims, or with fewer `inner` dims vectors
/// or numbers.
struct Batch {
  const Tensor& t;
  int64_t inner;

  int64_t outer() const { return t.dim() - inner; }
  int64_t rows() const { return inner > 1 ? t.size(t.dim() - 2) : 1; }
  int64_t columns() const { return inner > 0 ? t.size(t.dim() - 1) : 1; }
  /// Of a tensor with elements, or with as many items as something with elements.
  int64_t count() const;
  int64_t stride(int64_t d) const { return t.strides()[static_cast<size_t>(d)]; }
  /// The offset of item `i`, counted in the batches of `whole`, to which the batches of this
  /// broadcast.
  int64_t offset(int64_t i, const Batch& whole) const;
  void read(int64_t i, const Batch& whole, const Matrix& m) const;
  void write(int64_t i, const Matrix& m) const;
  void write_number(int64_t i, double value) const { write(i, {&value, 1, 1}); }
};

/// Whether t holds floating matrices, and square ones if `square`. If not, fails the context.
bool require_matrices(KernelRuntimeContext& ctx, const char* op, const Tensor& t, bool square);

/// Broadcasts the outer dims of both and appends them to `shape`, which must be empty. Fails the
/// context and returns false if they do not broadcast.
bool broadcast_batches(KernelRuntimeContext& ctx, const char* op, const Batch& a, const Batch& b,
                       Shape& shape);

/// Resizes `out` to the batch dims of `t` followed by the given last dims.
bool shape_like(KernelRuntimeContext& ctx, const char* op, const Tensor& t,
                std::initializer_list<int64_t> inner, Tensor& out);

/// Transposes a square matrix in place.
void transpose(const Matrix& a);

}  // namespace torch::executor::native::internal
