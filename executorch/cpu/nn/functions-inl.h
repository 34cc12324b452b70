/// Elementary functions that no activation needs, on vectors of float. `d` is any descriptor of
/// float lanes.
///
/// NaN and arguments outside of a function's domain give NaN, and infinities give the limits.
/// Errors are at most 4 units in the last place, 8 for functions that are computed from others
/// (sinh, cosh, tan, asinh, acosh, atanh). Polynomials are fitted to the function.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_FUNCTIONS_INL_H_
#undef EXECUTORCH_CPU_NN_FUNCTIONS_INL_H_
#else
#define EXECUTORCH_CPU_NN_FUNCTIONS_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/math-inl.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V Sqrt(D, V x) {
  return hn::Sqrt(x);
}
template <class D, class V>
HWY_INLINE V Rsqrt(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x));
}

template <class D, class V>
HWY_INLINE V Log10(D d, V x) {
  V n;
  const V r = LogOfMantissa(d, x, n);
  // log10(2) in two parts, of which the first has so few bits that its product is exact.
  const V low = hn::MulAdd(n, hn::Set(d, 4.6050390e-6f), hn::Mul(r, hn::Set(d, 0.43429448f)));
  return LogLimits(d, x, hn::MulAdd(n, hn::Set(d, 0.301025390625f), low));
}

/// log(1 + x). What 1 + x loses is added to the logarithm.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  const V lost = hn::Div(hn::Sub(x, hn::Sub(u, one)), u);
  const auto has_limit = hn::Or(hn::Le(u, hn::Zero(d)), hn::Ge(u, hn::Inf(d)));
  const V y = hn::Add(Log(d, u), hn::IfThenZeroElse(has_limit, lost));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // -0, too
}

/// e^x - 1 = 2^n (e^r - 1) + (2^n - 1)
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V bounded = hn::Min(hn::Max(x, hn::Set(d, -30.0f)), hn::Set(d, 89.0f));
  V n, shifted;
  const V p = Expm1OfRest(d, bounded, n, shifted);
  // Half of 2^n, which itself may be out of range.
  const auto exponent = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, kRounderBits - 126));
  const V half = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  const V y = hn::MulAdd(half, p, hn::Sub(half, hn::Set(d, 0.5f)));
  return KeepNaN(x, hn::CopySign(hn::Add(y, y), x));
}

/// y where a <= 88, else e^a / 2 as (e^(a / 2))^2 / 2: e^a would overflow before its half does.
template <class D, class V>
HWY_INLINE V HalfOfExp(D d, V a, V y) {
  const V root = Exp(d, hn::Mul(a, hn::Set(d, 0.5f)));
  const V large = hn::Mul(hn::Mul(root, hn::Set(d, 0.5f)), root);
  return hn::IfThenElse(hn::Gt(a, hn::Set(d, 88.0f)), large, y);
}

template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V e = Expm1(d, a);
  const V y = hn::Mul(hn::Add(e, hn::Div(e, hn::Add(e, one))), hn::Set(d, 0.5f));
  return hn::CopySign(HalfOfExp(d, a, y), x);
}

template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  const V a = hn::Abs(x), half = hn::Set(d, 0.5f);
  const V e = Exp(d, a);
  return HalfOfExp(d, a, hn::MulAdd(e, half, hn::Div(half, e)));
}

/// log(2 a) for large a, where a^2 would overflow, else y.
template <class D, class V>
HWY_INLINE V LogOfTwice(D d, V a, V y) {
  const V large = hn::Add(Log(d, a), hn::Set(d, 0.69314718f));
  return hn::IfThenElse(hn::Gt(a, hn::Set(d, 1e9f)), large, y);
}

template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f), t = hn::Mul(a, a);
  const V root = hn::Add(hn::Sqrt(hn::Add(t, one)), one);
  const V y = Log1p(d, hn::Add(a, hn::Div(t, root)));
  return hn::CopySign(LogOfTwice(d, a, y), x);
}

template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  const V one = hn::Set(d, 1.0f), t = hn::Sub(x, one);
  const V y = Log1p(d, hn::Add(t, hn::Sqrt(hn::MulAdd(t, t, hn::Add(t, t)))));
  return hn::IfThenElse(hn::Lt(x, one), hn::NaN(d), LogOfTwice(d, x, y));
}

template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V y = Log1p(d, hn::Div(hn::Add(a, a), hn::Sub(one, a)));
  return hn::CopySign(hn::Mul(y, hn::Set(d, 0.5f)), x);
}

/// asin(s) - s, given s^2 <= 1/4.
template <class D, class V>
HWY_INLINE V AsinTail(D d, V s, V square) {
  constexpr float kSeries[] = {4.1502896e-2f, 2.4609328e-2f, 4.5372425e-2f, 7.4962068e-2f,
                               1.6666725e-1f};
  return hn::Mul(hn::Mul(s, square), Polynomial(d, square, kSeries));
}

/// Beyond 1/2, asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)), and acos(a) is that without pi/2.
template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  const V a = hn::Abs(x), half = hn::Set(d, 0.5f);
  const auto is_large = hn::Gt(a, half);
  const V rest = hn::NegMulAdd(a, half, half);
  const V square = hn::IfThenElse(is_large, rest, hn::Mul(a, a));
  const V s = hn::IfThenElse(is_large, hn::Sqrt(rest), a);
  const V tail = AsinTail(d, s, square);
  const V large = hn::Sub(hn::Set(d, 1.57079633f), hn::Mul(hn::Set(d, 2.0f), hn::Add(s, tail)));
  return KeepNaN(x, hn::CopySign(hn::IfThenElse(is_large, large, hn::Add(s, tail)), x));
}

template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  const V a = hn::Abs(x), half = hn::Set(d, 0.5f), two = hn::Set(d, 2.0f);
  const auto is_large = hn::Gt(a, half);
  const V rest = hn::NegMulAdd(a, half, half);
  const V square = hn::IfThenElse(is_large, rest, hn::Mul(x, x));
  const V s = hn::IfThenElse(is_large, hn::Sqrt(rest), x);
  const V y = hn::Add(s, AsinTail(d, s, square));
  // pi/2 in two parts: where the result is small the rounding of the first would be seen.
  const V small = hn::Sub(hn::Set(d, 1.57079637f), hn::Add(y, hn::Set(d, 4.37113883e-8f)));
  const V twice = hn::Mul(two, y);
  const V large =
      hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 3.14159265f), twice), twice);
  return hn::IfThenElse(is_large, large, small);
}

/// atan(t) for 0 <= t <= 1.
template <class D, class V>
HWY_INLINE V AtanOfFraction(D d, V t) {
  constexpr float kSeries[] = {-1.8271482e-3f, 1.1064153e-2f,  -3.1455168e-2f,
                               5.8234020e-2f,  -8.4194286e-2f, 1.0957566e-1f,
                               -1.4265244e-1f, 1.9998639e-1f,  -3.3333302e-1f};
  const V square = hn::Mul(t, t);
  return hn::MulAdd(hn::Mul(t, square), Polynomial(d, square, kSeries), t);
}

/// Beyond 1, atan(a) = pi/2 - atan(1 / a).
template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const auto is_large = hn::Gt(a, one);
  const V y = AtanOfFraction(d, hn::IfThenElse(is_large, hn::Div(one, a), a));
  return hn::CopySign(hn::IfThenElse(is_large, hn::Sub(hn::Set(d, 1.57079633f), y), y), x);
}

/// The angle of the point (x, y), of the sign of y.
template <class V>
HWY_INLINE V Atan2(V y, V x) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> di;
  const V a = hn::Abs(x), b = hn::Abs(y);
  const auto is_steep = hn::Gt(b, a);
  const V less = hn::IfThenElse(is_steep, a, b), more = hn::IfThenElse(is_steep, b, a);
  // 0 / 0 counts as 0, and infinity / infinity as 1.
  const V over = hn::IfThenElse(hn::Eq(more, hn::Zero(d)), hn::Set(d, 1.0f), more);
  const V t = hn::IfThenElse(hn::Eq(less, hn::Inf(d)), hn::Set(d, 1.0f), hn::Div(less, over));
  const V low = AtanOfFraction(d, t);
  const V right = hn::IfThenElse(is_steep, hn::Sub(hn::Set(d, 1.57079633f), low), low);
  const auto is_left = hn::RebindMask(d, hn::Lt(hn::BitCast(di, x), hn::Zero(di)));  // -0, too
  const V angle = hn::IfThenElse(is_left, hn::Sub(hn::Set(d, 3.14159265f), right), right);
  return KeepNaN(x, KeepNaN(y, hn::CopySign(angle, y)));
}

/// The bound of |x| up to which SinCos() is right.
constexpr float kMostAngle = 8192.0f;

/// The sine and cosine of r = x - n pi/2, |r| <= pi/4, and n. The parts of pi/2 have so few bits
/// that their products with n are exact.
template <class D, class V>
HWY_INLINE auto SinCos(D d, V x, V& sine, V& cosine) {
  const V rounder = hn::Set(d, kRounder);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.63661977f), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = x;
  for (const float part : {1.5703125f, 4.83751297e-4f, 7.54953362e-8f, 2.56334407e-12f}) {
    r = hn::NegMulAdd(n, hn::Set(d, part), r);
  }
  const V t = hn::Mul(r, r);
  constexpr float kSine[] = {-1.9577849e-4f, 8.3327011e-3f, -1.6666664e-1f};
  constexpr float kCosine[] = {2.4537861e-5f, -1.3888256e-3f, 4.1666664e-2f};
  sine = hn::MulAdd(hn::Mul(r, t), Polynomial(d, t, kSine), r);
  const V most = hn::NegMulAdd(t, hn::Set(d, 0.5f), hn::Set(d, 1.0f));
  cosine = hn::MulAdd(hn::Mul(t, t), Polynomial(d, t, kCosine), most);
  return hn::BitCast(hn::RebindToSigned<D>(), shifted);  // its low bits are those of n
}

/// f(x) where an angle is too large for SinCos(), which is rare, else y.
template <class D, class V, class F>
HWY_INLINE V OfLargeAngles(D d, V x, V y, const F& f) {
  if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Abs(x), hn::Set(d, kMostAngle))))) return y;
  HWY_ALIGN float angles[hn::MaxLanes(D())], values[hn::MaxLanes(D())];
  hn::Store(x, d, angles);
  hn::Store(y, d, values);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (std::fabs(angles[i]) > kMostAngle) {
      values[i] = static_cast<float>(f(static_cast<double>(angles[i])));
    }
  }
  return hn::Load(d, values);
}

/// x where bit `bit` of n is 0, else -x.
template <int bit, class D, class V, class N>
HWY_INLINE V NegateByBit(D d, V x, N n) {
  const hn::RebindToSigned<D> di;
  const auto sign = hn::And(hn::ShiftLeft<31 - bit>(n), hn::SignBit(di));
  return hn::Xor(x, hn::BitCast(d, sign));
}
template <class D, class N>
HWY_INLINE auto IsOdd(D d, N n) {
  const hn::RebindToSigned<D> di;
  return hn::RebindMask(d, hn::Ne(hn::And(n, hn::Set(di, 1)), hn::Zero(di)));
}

template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  V sine, cosine;
  const auto n = SinCos(d, x, sine, cosine);
  const V y = NegateByBit<1>(d, hn::IfThenElse(IsOdd(d, n), cosine, sine), n);
  const V kept = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // -0
  return OfLargeAngles(d, x, kept, [](double angle) { return std::sin(angle); });
}

template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  V sine, cosine;
  const auto n = SinCos(d, x, sine, cosine);
  const auto next = hn::Add(n, hn::Set(di, 1));
  const V y = NegateByBit<1>(d, hn::IfThenElse(IsOdd(d, n), sine, cosine), next);
  return OfLargeAngles(d, x, y, [](double angle) { return std::cos(angle); });
}

template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  V sine, cosine;
  const auto n = SinCos(d, x, sine, cosine);
  const auto is_odd = IsOdd(d, n);
  const V over = hn::IfThenElse(is_odd, cosine, sine), under = hn::IfThenElse(is_odd, sine, cosine);
  const V y = NegateByBit<0>(d, hn::Div(over, under), n);
  const V kept = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
  return OfLargeAngles(d, x, kept, [](double angle) { return std::tan(angle); });
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
