/// IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and 10 fraction bits.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/Half.h>)
#include_next <c10/util/Half.h>
#else

#include <c10/macros/Macros.h>
#include <c10/util/bit_cast.h>
#include <c10/util/reduced_float.h>

#include <cstdint>
#include <limits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace c10 {
namespace detail {

/// Exact. Rebiases the exponent by 127 - 15; Inf and NaN move to exponent 255; a subnormal is a
/// count of 2^-24.
inline float fp16_ieee_to_fp32_value(uint16_t half) {
#if defined(__F16C__)
  return _cvtsh_ss(half);
#else
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t normal = (magnitude << 13) + ((magnitude < 0x7c00u ? 112u : 224u) << 23);
  const uint32_t subnormal = bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  return bit_cast<float>(sign | (magnitude < 0x0400u ? subnormal : normal));
#endif
}

/// Rounds to nearest, ties to even; from 65520 on the result is infinity.
inline uint16_t fp16_ieee_from_fp32_value(float value) {
#if defined(__F16C__)
  return static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#else
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // The unit in the last place of 0.5f is 2^-24, the step of subnormals: the sum does the
    // rounding.
    const float sum = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(sum) - 0x3f000000u));
  }
  const uint32_t rebiased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
#endif
}

}  // namespace detail

struct alignas(2) Half {
  uint16_t x;

  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }

  Half() = default;
  constexpr Half(unsigned short bits, from_bits_t) : x(bits) {}
  Half(float value) : x(detail::fp16_ieee_from_fp32_value(value)) {}
  operator float() const { return detail::fp16_ieee_to_fp32_value(x); }
};

C10_REDUCED_FLOAT_OPERATORS(Half)

}  // namespace c10

namespace std {
C10_REDUCED_FLOAT_LIMITS(c10::Half, 11, 3, 5, -13, 16, 0x0400, 0x7bff, 0x1400)
}  // namespace std

#endif
