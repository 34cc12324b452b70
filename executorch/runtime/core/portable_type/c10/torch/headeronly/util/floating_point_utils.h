/// The bits of a float, and a float of its bits.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/util/floating_point_utils.h>)
#include_next <torch/headeronly/util/floating_point_utils.h>
#else

#include <c10/util/bit_cast.h>

#include <cstdint>

namespace torch::headeronly::detail {

inline float fp32_from_bits(uint32_t bits) {
  return c10::bit_cast<float>(bits);
}
inline uint32_t fp32_to_bits(float value) {
  return c10::bit_cast<uint32_t>(value);
}

}  // namespace torch::headeronly::detail

#endif
