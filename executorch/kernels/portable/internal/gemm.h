// Matrix products over strided operands, for every dtype that eager PyTorch multiplies.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

#include <cstdint>
#include <type_traits>

namespace torch::executor::native::internal {

/// Element (i, j) lies at data + i * row_stride + j * col_stride (elements, any layout).
template <class T>
struct MatrixView {
  T* data;
  int64_t row_stride;
  int64_t col_stride;
};

/// The type sums are kept in: float and double for themselves, float for the 16-bit floating types,
/// unsigned integers (their overflow wraps, as eager does) for the integral ones.
template <class T>
using Accumulator =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>,
                       std::conditional_t<std::is_same_v<T, double>, double, float>>;

/// Writes the columns [j0, j0 + nj) of rows [p0, p0 + np) of B to panel[p * width + j], converted
/// to Acc; columns nj <= j < width are written as zero.
template <class Acc>
struct PanelSource {
  void (*pack)(const void* matrix, int64_t p0, int64_t np, int64_t j0, int64_t nj, Acc* panel,
               int64_t width);
  const void* matrix;
};

/// c[i,j] = alpha * sum_p a[i,p] * b[p,j] + beta * addend[i,j],   i < m, p < k, j < n
///   a, c    of type T, any strides; c must not overlap an operand. Where a_inner is not 0, column
///   p
///           of a lies (p / a_inner) * a_outer_stride + (p % a_inner) * a.col_stride from its row
///   b       of type T, or produced panel by panel by `b_source`, which a_inner needs
///   addend  of type T; strides may be 0 (broadcast); without data the term is absent, and `beta`
///           of zero leaves it unread, so that its NaNs do not spread
/// Sizes >= 0; k = 0 leaves only the addend term. Cannot fail.
/// Sums run in Accumulator<T>, rounded once to T at the end, over p ascending within blocks of p.
/// Cost: 2 m n k operations; for m or n <= 4 B or A is read once in the order of its memory.
/// Uses up to 100 KiB of stack, no other memory.
template <class T>
struct Gemm {
  using Acc = Accumulator<T>;
  int64_t m, n, k;
  MatrixView<const T> a;
  MatrixView<const T> b;
  MatrixView<T> c;
  MatrixView<const T> addend = {nullptr, 0, 0};
  Acc alpha = 1;
  Acc beta = 1;
  PanelSource<Acc> b_source = {nullptr, nullptr};
  int64_t a_inner = 0;
  int64_t a_outer_stride = 0;

  void run() const;
};

/// Calls f(T{}) with the C++ type of an element type that has products: the floating ones and the
/// integers of eager's matmul (not Bool, not UInt16 to UInt64). False for any other.
template <class F>
bool with_gemm_dtype(ScalarType type, F&& f) {
  bool known = false;
  with_dtype(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_same_v<T, bool> && !(std::is_unsigned_v<T> && sizeof(T) > 1)) {
      known = true;
      f(tag);
    }
  });
  return known;
}

}  // namespace torch::executor::native::internal
