/// Matrix products of strided operands, of any dtype that eager PyTorch multiplies.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>
#include <type_traits>

namespace executorch::cpu {

/// Element (i, j) is data[i * row_stride + j * col_stride]. Strides may be anything, also 0.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

/// The type of the sums of products of T. It is T itself for float and double, float for the 16-bit
/// floating types, and an unsigned integer for the integral types, so that overflow wraps as in
/// eager PyTorch.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>,
                       std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// An operand that does not lie in memory: produce() computes its blocks while they are packed.
/// It writes this block of batch entry s:
///   as A   rows [i0, i0 + ni), columns [p0, p0 + np), to to[i * ld + p]
///   as B   rows [p0, p0 + np), columns [i0, i0 + ni), to to[p * ld + i]; each row of `to` is
///          filled up with zeros from column ni to ld
/// Several threads may call produce() at once, also more than once for the same block.
template <class Acc>
struct MatrixSource {
  void (*produce)(const void* matrix, int64_t s, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                  Acc* to, int64_t ld) = nullptr;
  const void* matrix = nullptr;
  /// Whether each element is a number of the product's type, such as BF16; else it may be any Acc.
  bool in_type = true;
};

/// c[s,i,j] = act(alpha * sum_p a[s,i,p] * b[s,p,j] + beta * addend[s,i,j]) + residual[s,i,j], or
///            act(... + residual[s,i,j]) if `act_last`
///            s < batch, i < m, p < k, j < n
///   T         float, F16, BF16, double, int8_t to int64_t, uint8_t
///   c         must not overlap an operand, except that `residual` may be c itself
///   addend    strides may be 0 (a bias row has row_stride 0). The term is absent if `data` is
///             null. If `beta` is 0, addend is not read, so that its NaNs do not spread
///   act       for floating types only
///   residual  the term is absent if `data` is null
/// Sizes >= 0; with k = 0 the sum is 0. run() returns false, before anything is written, if
/// scratch memory is refused or m * n * k overflows an int64. Sums are of type Accumulator<T> and
/// are rounded to T once, at the end; their order depends on sizes and strides only, not on the
/// threads.
template <class T>
struct Gemm {
  using Acc = Accumulator<T>;
  int64_t m = 0, n = 0, k = 0;
  Matrix<const T> a, b;
  Matrix<T> c;
  Matrix<const T> addend = {};
  Acc alpha = 1;
  Acc beta = 1;
  Activation act = {};
  Matrix<const T> residual = {};
  bool act_last = false;
  /// Used instead of `a` or `b` if `produce` is set.
  MatrixSource<Acc> a_source = {}, b_source = {};
  int64_t batch = 1;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0, addend_batch = 0, residual_batch = 0;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
