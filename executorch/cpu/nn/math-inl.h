/// exp, log, tanh, erf, the normal distribution function and the activations made of them, on
/// vectors of float. `d` is any descriptor of float lanes.
///
/// NaN gives NaN, and infinities give the limits. Errors are at most 4 units in the last place, 8
/// for activations, also for denormal results. NormalCdf, Gelu and GeluTanh of negative x lose
/// more, because the argument that they pass to exp is rounded: some 12 + 3 x^2 units.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_NN_MATH_INL_H_
#undef EXECUTORCH_CPU_NN_MATH_INL_H_
#else
#define EXECUTORCH_CPU_NN_MATH_INL_H_
#endif
// clang-format on

#include <executorch/cpu/activation.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Keeps x alive up to here. Otherwise GCC lets a multiply-add overwrite a factor after its last
/// use, and then moves sums between registers, and some to the stack.
template <class V>
HWY_INLINE void Use([[maybe_unused]] V x) {
#if HWY_COMPILER_GCC && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  asm("" : : "v"(x.raw));
#endif
}

/// c[0] * x^(n-1) + ... + c[n-1]
template <class D, class V, size_t n>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[n]) {
  V p = hn::Set(d, c[0]);
  for (size_t i = 1; i < n; ++i) p = hn::MulAdd(p, x, hn::Set(d, c[i]));
  return p;
}

/// x where it is NaN, else y.
template <class V>
HWY_INLINE V KeepNaN(V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// The larger and the smaller of two; NaN where either is NaN.
template <class V>
HWY_INLINE V Larger(V x, V y) {
  return KeepNaN(x, hn::IfThenElse(hn::Gt(x, y), x, y));
}
template <class V>
HWY_INLINE V Smaller(V x, V y) {
  return KeepNaN(x, hn::IfThenElse(hn::Lt(x, y), x, y));
}

/// Expands f(name, value) for each operation of two operands; value is its result for vectors v and
/// w. Atan2 is in functions-inl.h.
#undef ET_FOR_EACH_ARITHMETIC
#define ET_FOR_EACH_ARITHMETIC(f)                                                 \
  f(Add, hn::Add(v, w)) f(Subtract, hn::Sub(v, w)) f(Multiply, hn::Mul(v, w))     \
      f(Divide, hn::Div(v, w)) f(Maximum, Larger(v, w)) f(Minimum, Smaller(v, w)) \
          f(Atan2, Atan2(v, w))

/// Adding it to a small number leaves the nearest integer in the low bits: 1.5 * 2^23.
constexpr float kRounder = 12582912.0f;
constexpr int32_t kRounderBits = 0x4B400000;

// With AVX-512 2^n is one instruction, and the bounds keep NaN.
#undef ET_SCALE_BY_POWER
#define ET_SCALE_BY_POWER (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)

/// Returns e^r - 1, where e^x = 2^n * e^r with n = round(x / ln 2): |r| <= ln(2) / 2, where a
/// polynomial does. The low bits of `shifted` are those of n.
template <class D, class V>
HWY_INLINE V Expm1OfRest(D d, V x, V& n, V& shifted) {
  const V rounder = hn::Set(d, kRounder);
  shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounder);
  n = hn::Sub(shifted, rounder);
  const V r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  constexpr float kTail[] = {1.3814465e-3f, 8.3687808e-3f, 4.1668393e-2f, 1.6666520e-1f,
                             0.49999994f};
  return hn::MulAdd(Polynomial(d, r, kTail), hn::Mul(r, r), r);
}

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  // e^89 overflows, and e^-104 underflows to 0. Arguments below are set to 0 first, because
  // processors of Intel take more than a hundred cycles for a denormal result, and masked scores
  // would give such.
  const auto vanishes = hn::Lt(x, hn::Set(d, -104.0f));
  const V bounded = hn::Min(hn::Set(d, 89.0f), hn::IfThenZeroElse(vanishes, x));
  V n, shifted;
  const V p = hn::Add(Expm1OfRest(d, bounded, n, shifted), hn::Set(d, 1.0f));
#if ET_SCALE_BY_POWER
  if constexpr (hn::MaxLanes(D()) == 16)
    return hn::IfThenZeroElse(vanishes, V{_mm512_scalef_ps(p.raw, n.raw)});
#endif
  // Two steps: 2^n itself may be out of range where the result is not.
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, kRounderBits));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto bias = hn::Set(di, 127);
  const V low = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V high = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), bias)));
  return KeepNaN(x, hn::IfThenZeroElse(vanishes, hn::Mul(hn::Mul(p, low), high)));
}

/// x = 2^exponent * (1 + f), |f| < 0.42; returns ln(1 + f). For positive finite x.
template <class D, class V>
HWY_INLINE V LogOfMantissa(D d, V x, V& exponent) {
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-126f));  // denormal: made normal first
  const auto bits = hn::BitCast(di, hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p23f)), x));
  // The exponent is one larger where the mantissa exceeds the square root of 2.
  const auto raised = hn::Add(bits, hn::Set(di, 0x3F800000 - 0x3F3504F3));
  const auto power = hn::Sub(hn::ShiftRight<23>(raised), hn::Set(di, 127));
  exponent = hn::Sub(hn::ConvertTo(d, power), hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(power))), hn::Set(d, 1.0f));
  constexpr float kSeries[] = {6.74664032e-2f,  -1.16756518e-1f, 1.18881623e-1f,
                               -1.24055889e-1f, 1.42195524e-1f,  -1.66679959e-1f,
                               2.00021187e-1f,  -2.50000096e-1f, 3.33333126e-1f};
  const V t = hn::Mul(f, f);
  const V tail =
      hn::MulAdd(hn::Mul(f, t), Polynomial(d, f, kSeries), hn::Mul(t, hn::Set(d, -0.5f)));
  return hn::Add(f, tail);
}

/// The logarithm of x if x is 0, infinite, negative or NaN; otherwise y.
template <class D, class V>
HWY_INLINE V LogLimits(D d, V x, V y) {
  const V infinity = hn::Inf(d);
  const V edge = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), hn::NaN(d));
  // Infinity and NaN are their own logarithms.
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::IfThenElse(hn::Eq(x, infinity), x, y),
                        KeepNaN(x, edge));
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  V n;
  const V r = LogOfMantissa(d, x, n);
  const V low = hn::MulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  return LogLimits(d, x, hn::MulAdd(n, hn::Set(d, 0.693359375f), low));
}

template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  V n;
  const V r = LogOfMantissa(d, x, n);
  return LogLimits(d, x, hn::MulAdd(r, hn::Set(d, 1.44269504f), n));
}

/// 1 / x, by a step of Newton's method from y, which is right to half of the bits.
template <class D, class V>
HWY_INLINE V RefineReciprocal(D d, V x, V y) {
  return hn::MulAdd(hn::NegMulAdd(x, y, hn::Set(d, 1.0f)), y, y);
}

/// 1 / x for 1 <= x < 2^20, to 2 units.
template <class D, class V>
HWY_INLINE V Reciprocal(D d, V x) {
#if ET_SCALE_BY_POWER
  return RefineReciprocal(d, x, hn::ApproximateReciprocal(x));
#else
  return hn::Div(hn::Set(d, 1.0f), x);
#endif
}

/// 2^x for x <= 0 with few operations; below 2^-126 it is 0.
template <class D, class V>
HWY_INLINE V Exp2OfNegative(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -127.0f);
  const V bounded = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);  // NaN stays
  // The rounder includes the exponent's bias, so the low bits are the exponent bits of 2^n, and 0
  // for 2^-127.
  const V rounder = hn::Set(d, kRounder + 127);
  const V shifted = hn::Add(bounded, rounder);
  const V r = hn::Sub(bounded, hn::Sub(shifted, rounder));
  const auto scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
  constexpr float kPowers[] = {1.32647e-3f,   9.67151e-3f,   5.550734e-2f,
                               2.4022242e-1f, 6.9314698e-1f, 1.0f};
  return hn::Mul(Polynomial(d, r, kPowers), scale);
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V a = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V t = hn::Mul(x, x);
  constexpr float kSmall[] = {-5.5151670e-3f, 2.0469423e-2f, -5.3688023e-2f, 1.3330831e-1f,
                              -3.3333260e-1f};
  const V small = hn::MulAdd(hn::Mul(a, t), Polynomial(d, t, kSmall), a);
  const V e = Exp(d, hn::Add(a, a));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, large), x);
}

/// The bound of |x| below which erf is computed from its series.
constexpr float kErfSmall = 0.95f;

/// erf(x) / x for |x| <= 1, given x^2.
template <class D, class V>
HWY_INLINE V ErfRatio(D d, V t) {
  constexpr float kSeries[] = {7.8540084e-5f, -8.0102420e-4f, 5.1883338e-3f, -2.6853815e-2f,
                               1.1283585e-1f, -3.7612626e-1f, 1.1283791f};
  return Polynomial(d, t, kSeries);
}

/// 1 - erf(a) for a >= 0.9: e^(-a^2) times a polynomial in 1 / (1 + a / 2).
template <class D, class V>
HWY_INLINE V ErfcTail(D d, V a) {
  const V one = hn::Set(d, 1.0f);
  const V bounded = hn::Min(hn::Set(d, 1e5f), a);
  const V u = Reciprocal(d, hn::MulAdd(bounded, hn::Set(d, 0.5f), one));
  constexpr float kTail[] = {8.8496320e-2f, -2.1212879e-1f, 6.5832598e-2f, 7.1520440e-2f,
                             1.7492674e-1f, 2.4778025e-1f,  2.8194711e-1f, 2.8210273e-1f};
  return hn::Mul(hn::Mul(Polynomial(d, u, kTail), u), Exp(d, hn::Neg(hn::Mul(a, a))));
}

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Abs(x);
  const V large = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), ErfcTail(d, a)), x);
  const V small = hn::Mul(x, ErfRatio(d, hn::Mul(x, x)));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, kErfSmall)), small, large);
}

/// P(N(0,1) <= x). For x = -a <= 0 it is e^(-a^2 / 2) times a polynomial in 1 / (1 + 0.26 a), so
/// that nothing cancels; below 2^-126 it is 0.
template <class D, class V>
HWY_INLINE V NormalCdf(D d, V x) {
  const V one = hn::Set(d, 1.0f), end = hn::Set(d, 13.3f);
  const V magnitude = hn::Abs(x);
  const V a = hn::IfThenElse(hn::Gt(magnitude, end), end, magnitude);  // NaN stays
  const V denominator = hn::MulAdd(a, hn::Set(d, 0.26f), one);
  const V power = hn::Mul(hn::Mul(a, a), hn::Set(d, -0.5f * 1.44269504f));
  constexpr float kTail[] = {3.3909258e-2f, -1.7042343e-1f, 2.9074872e-1f, -2.0048529e-1f,
                             1.9983225e-1f, 3.1369723e-2f,  1.0942186e-1f, 1.0172917e-1f,
                             1.0390482e-1f, -7.0665592e-6f};
  const V tail =
      hn::Mul(Polynomial(d, Reciprocal(d, denominator), kTail), Exp2OfNegative(d, power));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  return hn::Mul(x, NormalCdf(d, x));
}

/// x / (1 + e^y)
template <class D, class V>
HWY_INLINE V OverOnePlusExp(D d, V x, V y) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), Exp(d, y)));
}

/// x / (1 + e^(-x))
template <class D, class V>
HWY_INLINE V Silu(D d, V x) {
  return OverOnePlusExp(d, x, hn::Neg(x));
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  return OverOnePlusExp(d, hn::Set(d, 1.0f), hn::Neg(x));
}

/// x (1 + tanh(u)) / 2 = x / (1 + e^(-2u)) with u = sqrt(2 / pi) (x + 0.044715 x^3).
template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -2 * 0.79788456f * 0.044715f),
                             hn::Set(d, -2 * 0.79788456f));
  return OverOnePlusExp(d, x, hn::Mul(x, slope));
}

/// NaN stays NaN.
template <class D, class V>
HWY_INLINE V Clamp(D d, V x, float low, float high) {
  return KeepNaN(x, hn::Min(hn::Max(x, hn::Set(d, low)), hn::Set(d, high)));
}

template <class D, class V>
HWY_INLINE V HardSwish(D d, V x) {
  const V gate = Clamp(d, hn::Add(x, hn::Set(d, 3.0f)), 0.0f, 6.0f);
  return hn::Mul(hn::Mul(x, gate), hn::Set(d, 1.0f / 6));
}

template <class D, class V>
HWY_INLINE V Apply(D d, const Activation& act, V x) {
  switch (act.kind) {
    case Activation::Kind::None:
      return x;
    case Activation::Kind::Clamp:
      return Clamp(d, x, act.low, act.high);
    case Activation::Kind::Gelu:
      return Gelu(d, x);
    case Activation::Kind::GeluTanh:
      return GeluTanh(d, x);
    case Activation::Kind::Silu:
      return Silu(d, x);
    case Activation::Kind::Sigmoid:
      return Sigmoid(d, x);
    case Activation::Kind::Tanh:
      return Tanh(d, x);
    case Activation::Kind::HardSwish:
      return HardSwish(d, x);
  }
  return x;
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
