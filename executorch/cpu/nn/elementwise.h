/// Functions of one and of two elements over arrays, and conversions between storage types.
/// An operand and y may be the same array but must not overlap otherwise. Any alignment; n >= 0.
/// Everything runs on the calling thread and is computed in float, or arrays of double in double.
/// For the 16-bit types the error of an activation before rounding is at most 0.3 units in the last
/// place.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/function.h>
#include <executorch/cpu/types.h>

#include <cmath>
#include <cstdint>

namespace executorch::cpu {

/// y[i] = act(x[i])
void apply(const Activation& act, Type type, const void* x, void* y, int64_t n);
inline void apply(const Activation& act, const float* x, float* y, int64_t n) {
  apply(act, Type::F32, x, y, n);
}

/// y[i] = f(x[i])
void apply(Function f, Type type, const void* x, void* y, int64_t n);

/// The same in double. Errors are at most 4 units in the last place, 8 for Tan.
void apply(Function f, const double* x, double* y, int64_t n);
/// y[i] = act(x[i]) in double, for the activations without bounds.
void apply(Activation::Kind act, const double* x, double* y, int64_t n);

namespace in_double {
/// The activations without bounds, of one element.
inline double apply(Activation::Kind kind, double x) {
  using Kind = Activation::Kind;
  constexpr double kSqrt2OverPi = 0.79788456080286535588;
  switch (kind) {
    case Kind::Gelu:
      return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
    case Kind::GeluTanh:
      return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
    case Kind::Silu:
      return x / (1 + std::exp(-x));
    case Kind::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case Kind::Tanh:
      return std::tanh(x);
    default:
      return x;
  }
}
}  // namespace in_double

/// y[i] = (e^(inner x[i]) - 1) negative where x[i] <= 0, else x[i] positive
struct Elu {
  float negative = 1, positive = 1, inner = 1;
};
void apply(const Elu& elu, Type type, const void* x, void* y, int64_t n);

/// Maximum and Minimum are NaN where an operand is NaN. A modulo is the remainder of the division
/// that rounds alike, and exact. Power is a^b.
enum class Arithmetic : uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  Maximum,
  Minimum,
  Atan2,
  TruncDivide,
  FloorDivide,
  TruncModulo,
  FloorModulo,
  Power,
};
/// An array, or if `data` is null a single number.
struct Operand {
  const void* data = nullptr;
  float number = 0;
};
/// y[i] = a[i] op b[i]; at least one of the two is an array.
void apply(Arithmetic op, Type type, const Operand& a, const Operand& b, void* y, int64_t n);

/// y[i] = x[i]; conversion to a narrower type rounds to nearest even.
#define ET_ROW(T, name)                          \
  void convert(const T* x, float* y, int64_t n); \
  void convert(const float* x, T* y, int64_t n);
ET_NARROW_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
