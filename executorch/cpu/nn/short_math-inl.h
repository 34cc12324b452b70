/// Activations of vectors of float whose results are stored in 16 bits. Those made of the logistic
/// function, and Tanh, take fewer operations than in math-inl.h. Before rounding, results are right
/// to 20 bits, except for what Gelu and GeluTanh of negative x lose (math-inl.h). Results below
/// 2^-119 may be 0. NaN stays NaN.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#undef EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#else
#define EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

/// 2^y: a power of two for the integer part of y, times a polynomial for the rest.
template <class D, class V>
HWY_INLINE V ShortExp2(D d, V y) {
  constexpr float kPowers[] = {1.8775767e-3f, 8.9893397e-3f, 5.5826318e-2f,
                               2.4015361e-1f, 6.9315308e-1f, 0.99999994f};
#if ET_SCALE_BY_POWER
  if constexpr (hn::MaxLanes(D()) == 16) {
    const V fraction{_mm512_reduce_ps(y.raw, 1)};
    return V{_mm512_scalef_ps(Polynomial(d, fraction, kPowers).raw, y.raw)};
  }
#endif
  const hn::RebindToSigned<D> di;
  const V bounded = Clamp(d, y, -127.0f, 128.25f);
  // The rounder includes the exponent's bias, so the low bits are the exponent bits of 2^n: 0 for
  // n = -127, and those of infinity from n = 128 on.
  const V rounder = hn::Set(d, kRounder + 127);
  const V shifted = hn::Add(hn::Sub(bounded, hn::Set(d, 0.5f)), rounder);
  const V fraction = hn::Sub(bounded, hn::Sub(shifted, rounder));
  const auto scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::Mul(Polynomial(d, fraction, kPowers), scale);
}

/// x / (1 + 2^y)
template <class D, class V>
HWY_INLINE V OverOnePlusExp2(D d, V x, V y) {
  const V one = hn::Set(d, 1.0f), divisor = hn::Add(one, ShortExp2(d, y));
#if ET_SCALE_BY_POWER
  const V about = hn::ApproximateReciprocal(divisor);
  const V nearer = RefineReciprocal(d, divisor, about);
  // There is no such step for the reciprocal of infinity, 0.
  return hn::Mul(x, hn::IfThenElse(hn::Eq(about, hn::Zero(d)), about, nearer));
#else
  return hn::Div(x, divisor);
#endif
}

/// x / y for 1 <= y < 2^20, to 3 units.
template <class D, class V>
HWY_INLINE V ShortQuotient([[maybe_unused]] D d, V x, V y) {
#if ET_SCALE_BY_POWER
  return hn::Mul(x, Reciprocal(d, y));
#else
  return hn::Div(x, y);
#endif
}

/// tanh(x) as x P(x^2) / Q(x^2) for |x| <= 5; beyond, it is 1 or -1.
template <class D, class V>
HWY_INLINE V ShortTanh(D d, V x) {
  constexpr float kAbove[] = {1.6371066e-3f, 1.1661769e-1f, 9.9999797e-1f};
  constexpr float kBelow[] = {6.4461332e-5f, 1.8303799e-2f, 4.4993478e-1f, 1.0f};
  const V bounded = Clamp(d, x, -5.0f, 5.0f), t = hn::Mul(bounded, bounded);
  return ShortQuotient(d, hn::Mul(bounded, Polynomial(d, t, kAbove)), Polynomial(d, t, kBelow));
}

template <class D, class V>
HWY_INLINE V ApplyShort(D d, const Activation& act, V x) {
  constexpr float kLog2E = 1.44269504f, kTwiceU = -2 * 0.79788456f * kLog2E;
  switch (act.kind) {
    case Activation::Kind::GeluTanh: {
      const V slope =
          hn::MulAdd(hn::Mul(x, x), hn::Set(d, kTwiceU * 0.044715f), hn::Set(d, kTwiceU));
      return OverOnePlusExp2(d, x, hn::Mul(x, slope));
    }
    case Activation::Kind::Silu:
      return OverOnePlusExp2(d, x, hn::Mul(x, hn::Set(d, -kLog2E)));
    case Activation::Kind::Sigmoid:
      return OverOnePlusExp2(d, hn::Set(d, 1.0f), hn::Mul(x, hn::Set(d, -kLog2E)));
    case Activation::Kind::Tanh:
      return ShortTanh(d, x);
    default:
      return Apply(d, act, x);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
