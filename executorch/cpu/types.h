/// Element types of the engine and their conversion to the float it computes in.
#pragma once

#include <cstdint>

namespace executorch::cpu {

/// IEEE binary16 and bfloat16 as they lie in memory. Operators reinterpret their own types to
/// these.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

/// Storage of a floating operand; sums and functions are computed in float.
enum class Type : uint8_t { F32, F16, BF16 };

constexpr int64_t size_of(Type type) {
  return type == Type::F32 ? 4 : 2;
}

/// f(T{}) with the C++ type of a storage.
template <class F>
decltype(auto) with_type(Type type, const F& f) {
  switch (type) {
    case Type::F16:
      return f(F16{});
    case Type::BF16:
      return f(BF16{});
    default:
      return f(float{});
  }
}

}  // namespace executorch::cpu
