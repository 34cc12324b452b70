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

/// The type of the sums: float and double for themselves, float for the 16-bit floating types,
/// unsigned integers for the integral ones, whose overflow wraps as in eager.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>,
                       std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// An operand that is computed block by block while it is packed, instead of lying in memory.
/// produce() writes a block of batch entry s:
///   as A   rows [i0, i0 + ni), columns [p0, p0 + np), to to[i * ld + p]
///   as B   rows [p0, p0 + np), columns [i0, i0 + ni), to to[p * ld + i]; each row of `to` is
///          filled up with zeros from column ni to ld
/// Several threads call it at once, and a block may be asked for more than once.
template <class Acc>
struct MatrixSource {
  void (*produce)(const void* matrix, int64_t s, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                  Acc* to, int64_t ld) = nullptr;
  const void* matrix = nullptr;
};

/// All of B in panels of `width` columns (panels.h).
template <class Acc>
struct Panels {
  const Acc* data = nullptr;
  int64_t width = 0;
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
/// Sizes >= 0; with k = 0 the other terms remain. Returns false, before anything is written, if
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
  /// Used instead of `a` or `b` where set.
  MatrixSource<Acc> a_source = {}, b_source = {};
  /// The same as `b`, and read instead of it where it can be: the result is the same to the bit.
  Panels<Acc> b_panels = {};
  int64_t batch = 1;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0, addend_batch = 0, residual_batch = 0;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
