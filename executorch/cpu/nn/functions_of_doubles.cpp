#include <executorch/cpu/nn/elementwise.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/functions_of_doubles.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64
/// y[i] = f(x[i]), f on vectors, which is right for numbers in [low, high]. Others, and NaN, are
/// left to `exact`.
template <class F, class G>
HWY_INLINE void MapDoubles(const double* x, double* y, int64_t count, double low, double high,
                           const F& f, const G& exact) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  HWY_ALIGN double from[hn::MaxLanes(d)] = {}, to[hn::MaxLanes(d)];
  for (size_t i = 0; i < n; i += lanes) {
    const size_t m = std::min(lanes, n - i);
    if (m < lanes) std::copy_n(x + i, m, from);
    const auto v = m < lanes ? hn::Load(d, from) : hn::LoadU(d, x + i);
    const auto inside = hn::And(hn::Ge(v, hn::Set(d, low)), hn::Le(v, hn::Set(d, high)));
    const auto r = f(d, v);
    if (HWY_LIKELY(m == lanes && hn::AllTrue(d, inside))) {
      hn::StoreU(r, d, y + i);
      continue;
    }
    hn::Store(v, d, from);
    hn::Store(r, d, to);
    for (size_t k = 0; k < m; ++k) {
      y[i + k] = from[k] >= low && from[k] <= high ? to[k] : exact(from[k]);
    }
  }
}

/// x where it is 0 or -0, else y.
template <class D, class V>
HWY_INLINE V KeepZero(D d, V x, V y) {
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
}

template <class D, class V>
HWY_INLINE V SigmoidOfDoubles(D d, V x) {
  const V one = hn::Set(d, 1.0);
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
}
template <class D, class V>
HWY_INLINE V CoshOfDoubles(D d, V x) {
  const V e = hn::Exp(d, hn::Abs(x)), half = hn::Set(d, 0.5);
  return hn::MulAdd(half, e, hn::Div(half, e));
}
/// As GeluTanh() of floats.
template <class D, class V>
HWY_INLINE V GeluTanhOfDoubles(D d, V x) {
  constexpr double kTwoSqrt2OverPi = 2 * 0.79788456080286535588;
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -kTwoSqrt2OverPi * 0.044715),
                             hn::Set(d, -kTwoSqrt2OverPi));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0), hn::Exp(d, hn::Mul(x, slope))));
}

/// c[0] * x^(n-1) + ... + c[n-1]
template <class D, class V, size_t n>
HWY_INLINE V PolynomialOfDoubles(D d, V x, const double (&c)[n]) {
  V p = hn::Set(d, c[0]);
  for (size_t i = 1; i < n; ++i) p = hn::MulAdd(p, x, hn::Set(d, c[i]));
  return p;
}

/// erf(a) for 0 <= a < 1.
template <class D, class V>
HWY_INLINE V ErfOfFraction(D d, V a) {
  constexpr double kSeries[] = {
      -7.795898827002142e-10, 1.3720064546777686e-08, -1.6208483801871705e-07,
      1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
      -0.0008548325975389692, 0.0052239776071164225,  -0.02686617064323777,
      0.11283791670945006,    -0.37612638903183543,   1.1283791670955126};
  return hn::Mul(a, PolynomialOfDoubles(d, hn::Mul(a, a), kSeries));
}

/// 1 - erf(a) for 0.95 <= a <= 27, given e^(-a^2): that times a polynomial in 1 / (1 + 0.4 a).
template <class D, class V>
HWY_INLINE V ErfcOfLarge(D d, V a, V power) {
  constexpr double kTail[] = {0.0220474621460399,    -0.16715129230834483,  0.5628370769630315,
                              -1.0905082409795084,   1.3078349851734008,    -0.9585777892939004,
                              0.3759875957212826,    -0.01711924200261985,  -0.08933144298767422,
                              0.0967439734055574,    -0.03727267603893405,  -0.0016744738795139828,
                              -0.027573790438463804, -0.013245143011736134, 0.018020143031244596,
                              0.06681248160859354,   0.12168331742931433,   0.1715137028372051,
                              0.20762176373242752,   0.2256758334987468,    0.22567583341813718};
  const V one = hn::Set(d, 1.0);
  const V u = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.4), one));
  return hn::Mul(hn::Mul(PolynomialOfDoubles(d, u, kTail), u), power);
}

/// e^(-scale x^2). What rounding takes from the square is made good, for it would be multiplied by
/// the square.
template <class D, class V>
HWY_INLINE V ExpOfSquare(D d, V x, double scale) {
  const V square = hn::Mul(x, x), lost = hn::MulSub(x, x, square), s = hn::Set(d, -scale);
  const V power = hn::Exp(d, hn::Mul(s, square));
  return hn::MulAdd(hn::Mul(s, lost), power, power);
}

template <class D, class V>
HWY_INLINE V ErfOfDoubles(D d, V x) {
  const V one = hn::Set(d, 1.0), a = hn::Min(hn::Abs(x), hn::Set(d, 7.0));  // erf(7) is 1
  const V large = hn::Sub(one, ErfcOfLarge(d, a, ExpOfSquare(d, a, 1)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, one), ErfOfFraction(d, a), large), x);
}

/// x P(N(0,1) <= x)
template <class D, class V>
HWY_INLINE V GeluOfDoubles(D d, V x) {
  const V one = hn::Set(d, 1.0), half = hn::Set(d, 0.5);
  const V a = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752440));
  const V small = hn::NegMulAdd(half, ErfOfFraction(d, a), half);
  const V large = hn::Mul(half, ErfcOfLarge(d, a, ExpOfSquare(d, x, 0.5)));
  const V tail = hn::IfThenElse(hn::Lt(a, one), small, large);  // beyond |x|
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)));
}

constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kLeast = std::numeric_limits<double>::min();  // of normal numbers
constexpr double kMostPower = 706, kMostAngle = 39000;

/// The functions with vectors; f(name, function of d and v, limits of what it takes). The others
/// are rare, or Highway's are not exact where they should be, as the logarithms of powers of 10.
// clang-format off
#undef ET_FOR_EACH_OF_DOUBLES
#define ET_FOR_EACH_OF_DOUBLES(f)                                     \
  f(Acos, hn::Acos(d, v), -1, 1)                                      \
  f(Asin, hn::Asin(d, v), -1, 1)                                      \
  f(Atan, hn::Atan(d, v), -kMost, kMost)                              \
  f(Atanh, hn::Atanh(d, v), -0.999999, 0.999999)                      \
  f(Cos, hn::Cos(d, v), -kMostAngle, kMostAngle)                      \
  f(Cosh, CoshOfDoubles(d, v), -kMostPower, kMostPower)               \
  f(Erf, ErfOfDoubles(d, v), -kMost, kMost)                           \
  f(Exp, hn::Exp(d, v), -kMostPower, kMostPower)                      \
  f(Expm1, hn::CopySign(hn::Expm1(d, v), v), -kMostPower, kMostPower) \
  f(Log, hn::Log(d, v), kLeast, kMost)                                \
  f(Log1p, hn::Log1p(d, v), -0.999, kMost)                            \
  f(Rsqrt, hn::Div(hn::Set(d, 1.0), hn::Sqrt(v)), -kMost, kMost)      \
  f(Sin, KeepZero(d, v, hn::Sin(d, v)), -kMostAngle, kMostAngle)      \
  f(Sinh, hn::Sinh(d, v), -kMostPower, kMostPower)                    \
  f(Sqrt, hn::Sqrt(v), -kMost, kMost)                                 \
  f(Tan, KeepZero(d, v, hn::Div(hn::Sin(d, v), hn::Cos(d, v))), -kMostAngle, kMostAngle)
#undef ET_FOR_EACH_ACTIVATION_OF_DOUBLES
#define ET_FOR_EACH_ACTIVATION_OF_DOUBLES(f)                          \
  f(Gelu, GeluOfDoubles(d, v), -37, 37)                               \
  f(GeluTanh, GeluTanhOfDoubles(d, v), -20, 20)                       \
  f(Sigmoid, SigmoidOfDoubles(d, v), -kMostPower, kMostPower)         \
  f(Tanh, hn::Tanh(d, v), -kMost, kMost)
// clang-format on
#endif

/// Returns from the function around it, having computed f in vectors.
#undef ET_CASE
#define ET_CASE(Kind, exact, name, expression, low, high)                                        \
  case Kind::name:                                                                               \
    MapDoubles(                                                                                  \
        x, y, n, low, high, []([[maybe_unused]] auto d, auto v) HWY_ATTR { return expression; }, \
        [](double one) { return exact(Kind::name, one); });                                      \
    return true;

/// Returns false if there are no vectors for the function.
bool ApplyFunction([[maybe_unused]] Function function, [[maybe_unused]] const double* x,
                   [[maybe_unused]] double* y, [[maybe_unused]] int64_t n) {
#if HWY_HAVE_FLOAT64
#define ET_FUNCTION_CASE(...) ET_CASE(Function, in_double::apply, __VA_ARGS__)
  switch (function) {
    ET_FOR_EACH_OF_DOUBLES(ET_FUNCTION_CASE)
    default:
      break;
  }
#undef ET_FUNCTION_CASE
#endif
  return false;
}

bool ApplyActivation([[maybe_unused]] Activation::Kind act, [[maybe_unused]] const double* x,
                     [[maybe_unused]] double* y, [[maybe_unused]] int64_t n) {
#if HWY_HAVE_FLOAT64
#define ET_ACTIVATION_CASE(...) ET_CASE(Activation::Kind, in_double::apply, __VA_ARGS__)
  switch (act) {
    ET_FOR_EACH_ACTIVATION_OF_DOUBLES(ET_ACTIVATION_CASE)
    default:
      break;
  }
#undef ET_ACTIVATION_CASE
#endif
  return false;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {

HWY_EXPORT(ApplyFunction);
HWY_EXPORT(ApplyActivation);

void apply(Function f, const double* x, double* y, int64_t n) {
  if (HWY_DYNAMIC_DISPATCH(ApplyFunction)(f, x, y, n)) return;
  for (int64_t i = 0; i < n; ++i) y[i] = in_double::apply(f, x[i]);
}
void apply(Activation::Kind act, const double* x, double* y, int64_t n) {
  if (HWY_DYNAMIC_DISPATCH(ApplyActivation)(act, x, y, n)) return;
  for (int64_t i = 0; i < n; ++i) y[i] = in_double::apply(act, x[i]);
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
