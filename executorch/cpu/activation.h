/// Functions of one element that a matrix product or a convolution can apply to its result while it
/// is still in registers, and that stand alone as well (nn/elementwise.h).
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace executorch::cpu {

struct Activation {
  enum class Kind : uint8_t { None, Clamp, Gelu, GeluTanh, Silu, Sigmoid, Tanh, HardSwish };
  Kind kind = Kind::None;
  /// Clamp: the result lies in [low, high]; NaN stays NaN. Relu is [0, infinity].
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// Calls f with std::integral_constant<Activation::Kind, kind>, so that f compiles one loop for
/// each kind. A switch inside the loop would keep the compiler from unrolling it.
template <class F>
void with_kind(Activation::Kind kind, const F& f) {
  using Kind = Activation::Kind;
  switch (kind) {
    case Kind::None:
      return f(std::integral_constant<Kind, Kind::None>());
    case Kind::Clamp:
      return f(std::integral_constant<Kind, Kind::Clamp>());
    case Kind::Gelu:
      return f(std::integral_constant<Kind, Kind::Gelu>());
    case Kind::GeluTanh:
      return f(std::integral_constant<Kind, Kind::GeluTanh>());
    case Kind::Silu:
      return f(std::integral_constant<Kind, Kind::Silu>());
    case Kind::Sigmoid:
      return f(std::integral_constant<Kind, Kind::Sigmoid>());
    case Kind::Tanh:
      return f(std::integral_constant<Kind, Kind::Tanh>());
    case Kind::HardSwish:
      return f(std::integral_constant<Kind, Kind::HardSwish>());
  }
}

constexpr Activation relu() {
  return {Activation::Kind::Clamp, 0.0f, std::numeric_limits<float>::infinity()};
}

}  // namespace executorch::cpu
