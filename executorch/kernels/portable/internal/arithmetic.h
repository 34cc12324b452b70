/// Integer and floating arithmetic with PyTorch's results and without undefined behaviour:
/// integers wrap; a division by zero among integers sets a flag and gives 0.
/// Every function takes float, double and integers of any width; sums and products take Bool, too.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace torch::executor::native::internal {

template <class C>
constexpr bool kIsInt = std::is_integral_v<C>;

/// The type in which arithmetic of C wraps. Narrower ones would be promoted to int, which overflows.
template <class C>
using Unsigned = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;

/// `a` as a C: modulo 2^n, and for bool whether it is not 0.
template <class C>
C wrapped(Unsigned<C> a) {
  if constexpr (std::is_same_v<C, bool>) {
    return a != 0;
  } else {
    return static_cast<C>(a);
  }
}

template <class C>
C wrapping_add(C a, C b) {
  if constexpr (kIsInt<C>) {
    return wrapped<C>(Unsigned<C>(a) + Unsigned<C>(b));
  } else {
    return a + b;
  }
}

template <class C>
C wrapping_sub(C a, C b) {
  if constexpr (kIsInt<C>) {
    return wrapped<C>(Unsigned<C>(a) - Unsigned<C>(b));
  } else {
    return a - b;
  }
}

template <class C>
C wrapping_mul(C a, C b) {
  if constexpr (kIsInt<C>) {
    return wrapped<C>(Unsigned<C>(a) * Unsigned<C>(b));
  } else {
    return a * b;
  }
}

template <class C>
bool is_nan(C a) {
  return a != a;
}

/// The larger number; NaN if either is NaN.
template <class C>
C max_or_nan(C a, C b) {
  const C larger = a > b ? a : b;  // b if it is NaN
  return is_nan(a) ? a : larger;
}

template <class C>
C min_or_nan(C a, C b) {
  const C smaller = a < b ? a : b;
  return is_nan(a) ? a : smaller;
}

/// Division, rounded towards zero.
template <class C>
C trunc_div(C a, C b, bool* by_zero) {
  if constexpr (kIsInt<C>) {
    if (b == 0) {
      __atomic_store_n(by_zero, true, __ATOMIC_RELAXED);  // threads share the flag
      return 0;
    }
    return b == -1 ? wrapping_sub<C>(0, a) : a / b;
  } else {
    return std::trunc(a / b);
  }
}

/// Division, rounded towards minus infinity.
template <class C>
C floor_div(C a, C b, bool* by_zero) {
  if constexpr (kIsInt<C>) {
    const C quotient = trunc_div(a, b, by_zero);
    return quotient - (b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0));
  } else {
    if (b == 0) return a / b;
    // Use the exact remainder, because floor(a / b) is off by one where a / b rounds up.
    const C remainder = std::fmod(a, b);
    C quotient = (a - remainder) / b;
    if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(C{0}, a / b);
    const C floored = std::floor(quotient);
    return quotient - floored > C{0.5} ? floored + 1 : floored;
  }
}

/// Remainder of trunc_div: the sign of a.
template <class C>
C trunc_mod(C a, C b, bool* by_zero) {
  if constexpr (kIsInt<C>) {
    if (b == 0) {
      __atomic_store_n(by_zero, true, __ATOMIC_RELAXED);  // threads share the flag
      return 0;
    }
    return b == -1 ? 0 : a % b;
  } else {
    return std::fmod(a, b);
  }
}

/// Remainder of floor_div: the sign of b.
template <class C>
C floor_mod(C a, C b, bool* by_zero) {
  const C remainder = trunc_mod(a, b, by_zero);
  return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

/// a to the power b. A negative power of an integer is 0, except for the bases 1 and -1.
template <class C>
C power(C a, C b) {
  if constexpr (kIsInt<C>) {
    if (b < 0) {
      if (a == 1) return 1;
      return a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    }
    C result = 1;
    for (; b > 0; b >>= 1) {
      if (b & 1) result = wrapping_mul(result, a);
      a = wrapping_mul(a, a);
    }
    return result;
  } else {
    return std::pow(a, b);
  }
}

}  // namespace torch::executor::native::internal
