/// Matrix products over operands where they lie: any strides, any dtype that eager PyTorch
/// multiplies.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>
#include <type_traits>

namespace executorch::cpu {

/// Element (i, j) lies at data + i * row_stride + j * col_stride (elements, any layout, also 0).
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

/// The type sums are kept in: float and double for themselves, float for the 16-bit floating types,
/// unsigned integers (their overflow wraps, as eager does) for the integral ones.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>,
                       std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// An operand that is produced where it is needed instead of lying in memory.
///   as A: writes rows [i0, i0 + ni) of columns [p0, p0 + np) to to[i * ld + p]
///   as B: writes rows [p0, p0 + np) of columns [i0, i0 + ni) to to[p * ld + i]; what lies beyond
///   ni
///         in a row of ld is zeroed
/// of batch entry s. Called from several threads at once, for a part more than once perhaps.
template <class Acc>
struct MatrixSource {
  void (*produce)(const void* matrix, int64_t s, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                  Acc* to, int64_t ld) = nullptr;
  const void* matrix = nullptr;
};

/// c[s,i,j] = act(alpha * sum_p a[s,i,p] * b[s,p,j] + beta * addend[s,i,j]) + residual[s,i,j], or
///            act(... + residual[s,i,j]) if `act_last`
///            s < batch, i < m, p < k, j < n
///   T         float, F16, BF16, double, int8_t to int64_t, uint8_t
///   c         must not overlap an operand, except that `residual` may be c itself
///   addend    strides may be 0 (a bias row has row_stride 0); without data the term is absent, and
///             `beta` of zero leaves it unread, so that its NaNs do not spread
///   act       floating types only
///   residual  absent without data
/// Sizes >= 0; k = 0 leaves the other terms. False if memory is refused, or the multiply-adds are
/// more than an int64 counts, before anything is written. Sums run in Accumulator<T> and are
/// rounded once, at the end, in an order that depends on the sizes and strides only, not on the
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
  /// In place of `a` or `b`, where set.
  MatrixSource<Acc> a_source = {}, b_source = {};
  int64_t batch = 1;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0, addend_batch = 0, residual_batch = 0;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
