/// Sums, products, maxima and minima over one dim.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// y[o,c] = op over i < n of x[o * x_outer + i * x_step + c],   o < outer, c < inner, y dense
///   Sum       the sum divided by `divisor`; runs are added in float, their sums in double
///   Product   likewise
///   Max, Min  NaN if an element is NaN; for n = 0, -infinity and infinity
/// `indices`, which may be null, gets the i of the first element that is the maximum or minimum
/// (the first NaN, if there is one); then y may be null, and inner > 1 and n > 0 are needed.
/// Sizes >= 0; inner = 1 needs x_step = 1. Threads share the work; results do not depend on their
/// number. run() returns false, before anything is written, if memory is refused, a product of
/// sizes exceeds int64, or indices exceed int32.
struct Reduce {
  enum class Op : uint8_t { Sum, Product, Max, Min };
  Type type = Type::F32;  // of x and y
  Op op = Op::Sum;
  double divisor = 1;
  int64_t outer = 1, n = 1, inner = 1;
  int64_t x_outer = 0, x_step = 1;
  const void* x = nullptr;
  void* y = nullptr;
  int64_t* indices = nullptr;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

/// The maximum or minimum of n >= 1 contiguous elements, and the index of its first occurrence. If
/// an element is NaN, the result is NaN.
struct Extreme {
  float value;
  int64_t index;
};
Extreme extreme(Type type, Reduce::Op max_or_min, const void* x, int64_t n);

}  // namespace executorch::cpu
