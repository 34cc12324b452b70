/// bfloat16: the upper half of an IEEE 754 binary32.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/BFloat16.h>)
#include_next <c10/util/BFloat16.h>
#else

#include <c10/macros/Macros.h>
#include <c10/util/bit_cast.h>
#include <c10/util/reduced_float.h>

#include <cstdint>
#include <limits>

namespace c10 {
namespace detail {

inline float f32_from_bits(uint16_t bits) {
  return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Nearest, ties to even; every NaN becomes the quiet one.
inline uint16_t round_to_nearest_even(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

struct alignas(2) BFloat16 {
  uint16_t x;

  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  BFloat16() = default;
  constexpr BFloat16(unsigned short bits, from_bits_t) : x(bits) {}
  BFloat16(float value) : x(detail::round_to_nearest_even(value)) {}
  operator float() const { return detail::f32_from_bits(x); }
};

C10_REDUCED_FLOAT_OPERATORS(BFloat16)

}  // namespace c10

namespace std {
C10_REDUCED_FLOAT_LIMITS(c10::BFloat16, 8, 2, 4, -125, 128, 0x0080, 0x7f7f, 0x3c00)
}  // namespace std

#endif
