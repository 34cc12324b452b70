/// A loop nest over up to four operands at once, each with its own strides (0 where it is
/// broadcast). Kernels that compute use it to turn shapes, strides and dim orders into memory
/// offsets. Kernels that only move elements use strided_copy.h.
///
///   Loop loop(out.sizes());          // dims in logical order
///   loop.add(out).add(in);           // operands 0 and 1; `in` is broadcast to the loop's shape
///   loop.order_by(0);                // outermost dim = largest stride of operand 0
///   loop.collapse();                 // merge dims that can be walked as one
///
/// Strides, positions and offsets are in elements.
#pragma once

#include <executorch/kernels/portable/internal/cast.h>
#include <executorch/kernels/portable/internal/shape.h>

namespace torch::executor::native::internal {

constexpr int kMaxOperands = 4;

struct Loop {
  int ndim = 0;
  int n_operands = 0;
  static constexpr int64_t kBeyond = std::numeric_limits<int64_t>::max();
  int64_t numel = 1;  // kBeyond: at least that many
  int64_t sizes[kTensorDimensionLimit];
  int64_t strides[kMaxOperands][kTensorDimensionLimit];

  explicit Loop(ArrayRef<SizesType> shape = {});

  /// An operand that broadcasts to the loop's shape (checked before, see broadcast_with).
  Loop& add(const Tensor& t);
  /// An operand with one stride for each of the loop's dims, before any reordering.
  Loop& add(const int64_t* operand_strides);
  /// Removes dim `d`; the loop then visits the first element of each line along it.
  void take_out(int d);
  void order_by(int operand);
  void collapse();

  /// Offset of operand `k` at the `pos`-th element of the loop.
  int64_t offset(int k, int64_t pos) const;
  int64_t inner_stride(int k) const { return ndim > 0 ? strides[k][ndim - 1] : 0; }
  /// Whether operand `k` lies in memory exactly in the loop's order.
  bool is_dense(int k) const;
  /// Whether operand `k` is one element, seen everywhere.
  bool is_constant(int k) const;

 private:
  void count();
};

/// Calls f(offset, n, stride) for the innermost runs of operand `k` that make up [pos, pos + n).
template <class F>
void for_each_piece(const Loop& loop, int k, int64_t pos, int64_t n, F&& f) {
  if (loop.ndim == 0) {
    if (n > 0) f(int64_t{0}, int64_t{1}, int64_t{1});
    return;
  }
  const int inner = loop.ndim - 1;
  int64_t index[kTensorDimensionLimit];
  int64_t rest = pos, offset = 0;
  for (int d = inner; d > 0; --d) {
    index[d] = rest % loop.sizes[d];
    rest /= loop.sizes[d];
    offset += index[d] * loop.strides[k][d];
  }
  index[0] = rest;
  offset += rest * loop.strides[k][0];
  while (n > 0) {
    const int64_t left = loop.sizes[inner] - index[inner];
    const int64_t m = left < n ? left : n;
    f(offset, m, loop.strides[k][inner]);
    n -= m;
    offset += m * loop.strides[k][inner];
    index[inner] += m;
    for (int d = inner; d > 0 && index[d] == loop.sizes[d]; --d) {
      offset += loop.strides[k][d - 1] - loop.strides[k][d] * loop.sizes[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

/// Loads dst[i] = element pos+i of operand `k`, whose first element is at `data`.
template <class C>
void gather(const Loop& loop, int k, const void* data, ScalarType type, int64_t pos, int64_t n,
            C* dst);
/// Stores src[i] to element pos+i of operand `k`.
template <class C>
void scatter(const Loop& loop, int k, void* data, ScalarType type, int64_t pos, int64_t n,
             const C* src);

/// Calls f(offsets, n) for each innermost run of n elements, with the offset of every operand.
template <class F>
void for_each_run(const Loop& loop, F&& f) {
  if (loop.numel == 0) return;
  int64_t offsets[kMaxOperands] = {};
  if (loop.ndim == 0) {
    f(offsets, int64_t{1});
    return;
  }
  const int outer = loop.ndim - 1;
  const int64_t n = loop.sizes[outer];
  int64_t index[kTensorDimensionLimit] = {};
  for (;;) {
    f(offsets, n);
    int d = outer - 1;
    for (; d >= 0; --d) {
      ++index[d];
      for (int k = 0; k < loop.n_operands; ++k) offsets[k] += loop.strides[k][d];
      if (index[d] < loop.sizes[d]) break;
      for (int k = 0; k < loop.n_operands; ++k) offsets[k] -= loop.strides[k][d] * loop.sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace torch::executor::native::internal
