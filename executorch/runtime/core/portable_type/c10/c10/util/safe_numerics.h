/// Integer arithmetic that reports overflow: true means that `*out` wrapped around.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/safe_numerics.h>)
#include_next <c10/util/safe_numerics.h>
#else

#include <cstddef>
#include <cstdint>

namespace c10 {

inline bool add_overflows(uint64_t a, uint64_t b, uint64_t* out) {
  return __builtin_add_overflow(a, b, out);
}
inline bool add_overflows(int64_t a, int64_t b, int64_t* out) {
  return __builtin_add_overflow(a, b, out);
}
inline bool mul_overflows(uint64_t a, uint64_t b, uint64_t* out) {
  return __builtin_mul_overflow(a, b, out);
}
inline bool mul_overflows(int64_t a, int64_t b, int64_t* out) {
  return __builtin_mul_overflow(a, b, out);
}

template <typename It>
bool safe_multiplies_u64(It first, It last, uint64_t* out) {
  uint64_t product = 1;
  bool overflow = false;
  for (; first != last; ++first) {
    overflow |= mul_overflows(product, static_cast<uint64_t>(*first), &product);
  }
  *out = product;
  return overflow;
}

template <typename Container>
bool safe_multiplies_u64(const Container& c, uint64_t* out) {
  return safe_multiplies_u64(c.begin(), c.end(), out);
}

}  // namespace c10

#endif
