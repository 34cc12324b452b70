#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/overflows.h>)
#include_next <c10/util/overflows.h>
#else

#include <cmath>
#include <limits>
#include <type_traits>

namespace c10 {

/// Whether the number `f` lies outside the range of `To`. An unsigned `To` may take the negative
/// of a value in its range unless `strict_unsigned`.
template <typename To, typename From>
bool overflows(From f, bool strict_unsigned = false) {
  using Limit = std::numeric_limits<To>;
  if constexpr (std::is_same_v<To, bool>) {
    return false;
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_signed_v<From>) {
      if (f < 0) {
        if constexpr (std::is_signed_v<To>) {
          return f < Limit::lowest();
        } else {
          const auto magnitude = -static_cast<std::make_unsigned_t<From> >(f);
          return strict_unsigned || magnitude > Limit::max();
        }
      }
    }
    return static_cast<std::make_unsigned_t<From> >(f) >
           static_cast<std::make_unsigned_t<To> >(Limit::max());
  } else {
    const double value = static_cast<double>(f);
    if (Limit::has_infinity && std::isinf(value)) return false;
    if (!Limit::has_quiet_NaN && std::isnan(value)) return true;
    return value < static_cast<double>(Limit::lowest()) ||
           value > static_cast<double>(Limit::max());
  }
}

}  // namespace c10

#endif
