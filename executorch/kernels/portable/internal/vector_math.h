/// exp, tanh, erf and the normal distribution function in float without branches or calls, so that
/// loops over them vectorise; in double they are the standard library's.
/// NaN gives NaN, infinities their limits; relative errors are below 4 * 2^-24 (results that are
/// denormal: absolute).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace torch::executor::native::internal {

/// e^x = 2^n * e^r with n = round(x / ln 2): |r| <= ln(2) / 2, where a polynomial does.
inline float exp_of(float x) {
  x = x > 89.0f ? 89.0f : x;  // e^89 overflows, e^-105 underflows to 0
  x = x < -105.0f ? -105.0f : x;
  constexpr float kRounder =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the mantissa
  const float shifted = x * 1.44269504f + kRounder;
  const int32_t n = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder);
  const float n_float = shifted - kRounder;
  const float r = (x - n_float * 0.693359375f) + n_float * 2.12194440e-4f;
  float p = 1.3814465e-3f;
  p = p * r + 8.3687808e-3f;
  p = p * r + 4.1668393e-2f;
  p = p * r + 1.6666520e-1f;
  p = p * r + 0.49999994f;
  p = p * r * r + r + 1.0f;
  // Two steps: 2^n itself may be out of range where the result is not.
  const int32_t half = n >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((n - half + 127) << 23);
  return p * low * high;
}
inline double exp_of(double x) {
  return std::exp(x);
}

inline float tanh_of(float x) {
  const float a = std::fabs(x);
  const float t = x * x;
  float p = -5.5151670e-3f;
  p = p * t + 2.0469423e-2f;
  p = p * t - 5.3688023e-2f;
  p = p * t + 1.3330831e-1f;
  p = p * t - 3.3333260e-1f;
  const float small = a + a * t * p;
  const float large = 1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f);
  return std::copysign(a < 0.625f ? small : large, x);
}
inline double tanh_of(double x) {
  return std::tanh(x);
}

/// erf(x) / x for |x| <= 1, given x^2.
inline float erf_ratio(float t) {
  float p = 7.8540084e-5f;
  p = p * t - 8.0102420e-4f;
  p = p * t + 5.1883338e-3f;
  p = p * t - 2.6853815e-2f;
  p = p * t + 1.1283585e-1f;
  p = p * t - 3.7612626e-1f;
  return p * t + 1.1283791f;
}

/// 1 - erf(a) for a >= 0.9: e^(-a^2) times a polynomial in 1 / (1 + a / 2).
inline float erfc_tail(float a) {
  const float u = 1.0f / (1.0f + 0.5f * a);
  float p = 8.8496320e-2f;
  p = p * u - 2.1212879e-1f;
  p = p * u + 6.5832598e-2f;
  p = p * u + 7.1520440e-2f;
  p = p * u + 1.7492674e-1f;
  p = p * u + 2.4778025e-1f;
  p = p * u + 2.8194711e-1f;
  p = p * u + 2.8210273e-1f;
  return p * u * exp_of(-a * a);
}

inline float erf_of(float x) {
  const float a = std::fabs(x);
  const float large = std::copysign(1.0f - erfc_tail(a), x);
  return a < 0.95f ? x * erf_ratio(x * x) : large;
}
inline double erf_of(double x) {
  return std::erf(x);
}

/// P(N(0,1) <= x) = (1 + erf(x / sqrt(2))) / 2, without cancellation for negative x.
inline float normal_cdf(float x) {
  const float y = x * 0.70710678f;
  const float a = std::fabs(y);
  const float tail = 0.5f * erfc_tail(a);
  return a < 0.95f ? 0.5f + 0.5f * y * erf_ratio(y * y) : y < 0 ? tail : 1.0f - tail;
}
inline double normal_cdf(double x) {
  return 0.5 * std::erfc(-x * 0.70710678118654752440);
}

template <class C>
C sigmoid_of(C x) {
  return C{1} / (C{1} + exp_of(-x));
}

}  // namespace torch::executor::native::internal
