/// Activations of vectors of float whose results are stored in 16 bits: of few operations, right
/// to 0.3 units in the last place before they are rounded to T, F16 or BF16. Below 2^-119 they may
/// be 0; NaN stays NaN.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#undef EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#else
#define EXECUTORCH_CPU_NN_SHORT_MATH_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/math-inl.h>
#include <executorch/cpu/types.h>

#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu {
namespace HWY_NAMESPACE {

/// x / y for y >= 1, to 14 bits.
template <class D, class V>
HWY_INLINE V ShortQuotient([[maybe_unused]] D d, V x, V y) {
#if ET_SCALE_BY_POWER
  return hn::Mul(x, hn::ApproximateReciprocal(y));
#else
  return hn::Div(x, y);
#endif
}

/// 2^y to 13 bits: a power of two for the integer below y, a polynomial for the rest.
template <class D, class V>
HWY_INLINE V ShortExp2(D d, V y) {
  constexpr float kPowers[] = {7.8024521e-2f, 2.2606716e-1f, 6.9583356e-1f, 9.9992520e-1f};
#if ET_SCALE_BY_POWER
  if constexpr (hn::MaxLanes(D()) == 16) {
    const V fraction{_mm512_reduce_ps(y.raw, 1)};
    return V{_mm512_scalef_ps(Polynomial(d, fraction, kPowers).raw, y.raw)};
  }
#endif
  const hn::RebindToSigned<D> di;
  const V bounded = Clamp(d, y, -127.0f, 128.25f);
  // With the exponent's bias in the rounder the low bits are those of 2^n: of -127 they are 0, from
  // 128 on those of infinity.
  const V rounder = hn::Set(d, kRounder + 127);
  const V shifted = hn::Add(hn::Sub(bounded, hn::Set(d, 0.5f)), rounder);
  const V fraction = hn::Sub(bounded, hn::Sub(shifted, rounder));
  const auto scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  return hn::Mul(Polynomial(d, fraction, kPowers), scale);
}

/// x / (1 + 2^y)
template <class D, class V>
HWY_INLINE V OverOnePlusExp2(D d, V x, V y) {
  return ShortQuotient(d, x, hn::Add(hn::Set(d, 1.0f), ShortExp2(d, y)));
}

/// x P(N(0,1) <= x), the probability of -|x| being 2 to a polynomial, which falls on forever beyond
/// where it matters.
template <class T, class D, class V>
HWY_INLINE V ShortGelu(D d, V x) {
  // To -5.9, below which F16 has nothing, and to -13.4 for BF16.
  constexpr float kF16[] = {-1.8350681e-6f, 6.1602674e-5f,  -9.3055365e-4f, 8.5079828e-3f,
                            -5.3960215e-2f, -4.5846429e-1f, -1.1512511f,    -9.9999529e-1f};
  constexpr float kBF16[] = {-3.0342761e-7f, 1.7137099e-5f,  -4.0725741e-4f, 5.3654360e-3f,
                             -4.4037431e-2f, -4.7365144e-1f, -1.1424385f,    -1.0008371f};
  const V power = Polynomial(d, hn::Abs(x), std::is_same_v<T, F16> ? kF16 : kBF16);
  const V tail = ShortExp2(d, power);
  const V cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail));
  return hn::Mul(x, cdf);
}

/// x P(x^2) / Q(x^2) up to 5; then it is 1.
template <class D, class V>
HWY_INLINE V ShortTanh(D d, V x) {
  constexpr float kAbove[] = {1.6371066e-3f, 1.1661769e-1f, 9.9999797e-1f};
  constexpr float kBelow[] = {6.4461332e-5f, 1.8303799e-2f, 4.4993478e-1f, 1.0f};
  const V bounded = Clamp(d, x, -5.0f, 5.0f), t = hn::Mul(bounded, bounded);
  return ShortQuotient(d, hn::Mul(bounded, Polynomial(d, t, kAbove)), Polynomial(d, t, kBelow));
}

template <class T, class D, class V>
HWY_INLINE V ApplyShort(D d, const Activation& act, V x) {
  constexpr float kLog2E = 1.44269504f, kTwiceU = -2 * 0.79788456f * kLog2E;
  switch (act.kind) {
    case Activation::Kind::Gelu:
      return ShortGelu<T>(d, x);
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

}  // namespace HWY_NAMESPACE
}  // namespace executorch::cpu
HWY_AFTER_NAMESPACE();

#endif  // once per target
