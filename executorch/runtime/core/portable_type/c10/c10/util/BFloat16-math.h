/// The functions of <cmath> for Half and BFloat16, computed in float.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/BFloat16-math.h>)
#include_next <c10/util/BFloat16-math.h>
#else

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cmath>

namespace std {

#define C10_REDUCED_FLOAT_UNARY(name)          \
  inline c10::Half name(c10::Half a) {         \
    return std::name(static_cast<float>(a));   \
  }                                            \
  inline c10::BFloat16 name(c10::BFloat16 a) { \
    return std::name(static_cast<float>(a));   \
  }
C10_REDUCED_FLOAT_UNARY(abs)
C10_REDUCED_FLOAT_UNARY(acos)
C10_REDUCED_FLOAT_UNARY(asin)
C10_REDUCED_FLOAT_UNARY(atan)
C10_REDUCED_FLOAT_UNARY(ceil)
C10_REDUCED_FLOAT_UNARY(cos)
C10_REDUCED_FLOAT_UNARY(erf)
C10_REDUCED_FLOAT_UNARY(exp)
C10_REDUCED_FLOAT_UNARY(expm1)
C10_REDUCED_FLOAT_UNARY(floor)
C10_REDUCED_FLOAT_UNARY(log)
C10_REDUCED_FLOAT_UNARY(log10)
C10_REDUCED_FLOAT_UNARY(log1p)
C10_REDUCED_FLOAT_UNARY(log2)
C10_REDUCED_FLOAT_UNARY(nearbyint)
C10_REDUCED_FLOAT_UNARY(sin)
C10_REDUCED_FLOAT_UNARY(sinh)
C10_REDUCED_FLOAT_UNARY(sqrt)
C10_REDUCED_FLOAT_UNARY(tan)
C10_REDUCED_FLOAT_UNARY(tanh)
C10_REDUCED_FLOAT_UNARY(trunc)
#undef C10_REDUCED_FLOAT_UNARY

#define C10_REDUCED_FLOAT_PREDICATE(name)    \
  inline bool name(c10::Half a) {            \
    return std::name(static_cast<float>(a)); \
  }                                          \
  inline bool name(c10::BFloat16 a) {        \
    return std::name(static_cast<float>(a)); \
  }
C10_REDUCED_FLOAT_PREDICATE(isfinite)
C10_REDUCED_FLOAT_PREDICATE(isinf)
C10_REDUCED_FLOAT_PREDICATE(isnan)
#undef C10_REDUCED_FLOAT_PREDICATE

#define C10_REDUCED_FLOAT_BINARY(name)                              \
  inline c10::Half name(c10::Half a, c10::Half b) {                 \
    return std::name(static_cast<float>(a), static_cast<float>(b)); \
  }                                                                 \
  inline c10::BFloat16 name(c10::BFloat16 a, c10::BFloat16 b) {     \
    return std::name(static_cast<float>(a), static_cast<float>(b)); \
  }
C10_REDUCED_FLOAT_BINARY(atan2)
C10_REDUCED_FLOAT_BINARY(fmod)
C10_REDUCED_FLOAT_BINARY(pow)
#undef C10_REDUCED_FLOAT_BINARY

}  // namespace std

#endif
