/// Functions of one element that a matrix product or a convolution can apply to its result while it
/// is still in registers, and that stand alone as well (nn/elementwise.h).
#pragma once

#include <cstdint>
#include <limits>

namespace executorch::cpu {

struct Activation {
  enum class Kind : uint8_t { None, Clamp, Gelu, GeluTanh, Silu, Sigmoid, Tanh, HardSwish };
  Kind kind = Kind::None;
  /// Clamp: the result lies in [low, high]; NaN stays NaN. Relu is [0, infinity].
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

constexpr Activation relu() {
  return {Activation::Kind::Clamp, 0.0f, std::numeric_limits<float>::infinity()};
}

}  // namespace executorch::cpu
