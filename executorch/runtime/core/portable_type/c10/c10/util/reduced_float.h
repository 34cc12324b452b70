/// What Half and BFloat16 share: every operation is done in float and rounded once.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif

/// Operators of the 16-bit float type T, at namespace scope. With another T or an integer the
/// result is T; with float or double it is float or double.
#define C10_REDUCED_FLOAT_OPERATORS(T)                                   \
  C10_REDUCED_FLOAT_OPERATOR(T, +)                                       \
  C10_REDUCED_FLOAT_OPERATOR(T, -)                                       \
  C10_REDUCED_FLOAT_OPERATOR(T, *)                                       \
  C10_REDUCED_FLOAT_OPERATOR(T, /)                                       \
  inline T operator-(const T& a) {                                       \
    return T(static_cast<unsigned short>(a.x ^ 0x8000), T::from_bits()); \
  }

#define C10_REDUCED_FLOAT_OPERATOR(T, op)                  \
  inline T operator op(const T& a, const T& b) {           \
    return static_cast<float>(a) op static_cast<float>(b); \
  }                                                        \
  inline T& operator op##=(T& a, const T& b) {             \
    return a = a op b;                                     \
  }                                                        \
  inline float operator op(T a, float b) {                 \
    return static_cast<float>(a) op b;                     \
  }                                                        \
  inline float operator op(float a, T b) {                 \
    return a op static_cast<float>(b);                     \
  }                                                        \
  inline float& operator op##=(float& a, const T& b) {     \
    return a op## = static_cast<float>(b);                 \
  }                                                        \
  inline double operator op(T a, double b) {               \
    return static_cast<double>(a) op b;                    \
  }                                                        \
  inline double operator op(double a, T b) {               \
    return a op static_cast<double>(b);                    \
  }                                                        \
  inline T operator op(T a, int b) {                       \
    return a op static_cast<T>(b);                         \
  }                                                        \
  inline T operator op(int a, T b) {                       \
    return static_cast<T>(a) op b;                         \
  }                                                        \
  inline T operator op(T a, int64_t b) {                   \
    return a op static_cast<T>(b);                         \
  }                                                        \
  inline T operator op(int64_t a, T b) {                   \
    return static_cast<T>(a) op b;                         \
  }

/// std::numeric_limits<T>; the arguments are bits, except the four counts.
#define C10_REDUCED_FLOAT_LIMITS(T, mantissa, decimals, max_decimals, min_exp, max_exp, min_bits, \
                                 max_bits, epsilon_bits)                                          \
  template <>                                                                                     \
  class numeric_limits<T> : public numeric_limits<float> {                                        \
   public:                                                                                        \
    static constexpr int digits = mantissa;                                                       \
    static constexpr int digits10 = decimals;                                                     \
    static constexpr int max_digits10 = max_decimals;                                             \
    static constexpr int min_exponent = min_exp;                                                  \
    static constexpr int max_exponent = max_exp;                                                  \
    static constexpr T min() { return T(min_bits, T::from_bits()); }                              \
    static constexpr T max() { return T(max_bits, T::from_bits()); }                              \
    static constexpr T lowest() { return T(0x8000 | max_bits, T::from_bits()); }                  \
    static constexpr T epsilon() { return T(epsilon_bits, T::from_bits()); }                      \
    static constexpr T denorm_min() { return T(1, T::from_bits()); }                              \
    static constexpr T infinity() { return T(max_bits + 1, T::from_bits()); }                     \
    static constexpr T quiet_NaN() { return T(0x7fff, T::from_bits()); }                          \
    static constexpr T signaling_NaN() { return T(max_bits + 2, T::from_bits()); }                \
    static T round_error() { return T(0.5f); }                                                    \
  };
