/// Divisions with a rounded quotient, their remainders, and powers, on vectors of float. Remainders
/// and powers are computed in double, or where Highway has no vectors of double (WebAssembly) by
/// the C library.
// clang-format off
#if defined(EXECUTORCH_CPU_NN_ROUNDED_DIVISION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EXECUTORCH_CPU_NN_ROUNDED_DIVISION_INL_H_
#undef EXECUTORCH_CPU_NN_ROUNDED_DIVISION_INL_H_
#else
#define EXECUTORCH_CPU_NN_ROUNDED_DIVISION_INL_H_
#endif
// clang-format on

#include <executorch/cpu/nn/math-inl.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// As ET_FOR_EACH_ARITHMETIC, for the functions below.
#undef ET_FOR_EACH_ROUNDED_DIVISION
#define ET_FOR_EACH_ROUNDED_DIVISION(f)                               \
  f(TruncDivide, TruncDivide(v, w)) f(FloorDivide, FloorDivide(v, w)) \
      f(TruncModulo, TruncModulo(v, w)) f(FloorModulo, FloorModulo(v, w)) f(Power, Power(v, w))

/// f(x, y) for each element.
template <class V, class F>
HWY_INLINE V ByElement(V x, V y, const F& f) {
  const hn::DFromV<V> d;
  HWY_ALIGN float a[hn::MaxLanes(d)], b[hn::MaxLanes(d)];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  for (size_t i = 0; i < hn::Lanes(d); ++i) a[i] = f(a[i], b[i]);
  return hn::Load(d, a);
}

#if HWY_HAVE_FLOAT64
/// f(x, y) for vectors of double, rounded to float. f gets the descriptor, too.
template <class V, class F>
HWY_INLINE V InDouble(V x, V y, const F& f) {
  const hn::DFromV<V> d;
  const hn::Half<decltype(d)> half;
  const hn::Rebind<double, decltype(half)> wide;
  const auto low = f(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)),
                     hn::PromoteTo(wide, hn::LowerHalf(half, y)));
  const auto high = f(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)),
                      hn::PromoteTo(wide, hn::UpperHalf(half, y)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}
#endif

template <class V>
HWY_INLINE V TruncDivide(V x, V y) {
  return hn::Trunc(hn::Div(x, y));
}

/// x - TruncDivide(x, y) * y, which is exact, with the sign of x.
template <class V>
HWY_INLINE V TruncModulo(V x, V y) {
  const auto remainder = [](float a, float b) { return std::fmod(a, b); };
#if HWY_HAVE_FLOAT64
  // In double a quotient of floats below 2^29 is not rounded up to an integer, and its product with
  // y is exact. Larger ones are rare.
  bool is_large = false;
  const V r = InDouble(x, y, [&](auto wide, auto a, auto b) HWY_ATTR {
    const auto quotient = hn::Trunc(hn::Div(a, b));
    is_large |= !hn::AllFalse(wide, hn::Ge(hn::Abs(quotient), hn::Set(wide, 0x1p29)));
    return hn::NegMulAdd(quotient, b, a);
  });
  if (HWY_UNLIKELY(is_large)) return ByElement(x, y, remainder);
  // Also where y is infinite.
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Abs(y)), x, hn::CopySign(r, x));
#else
  return ByElement(x, y, remainder);
#endif
}

/// Whether a remainder r of the sign of the dividend has to become one of the sign of y.
template <class D, class V>
HWY_INLINE auto IsOfOtherSign(D d, V r, V y) {
  const V zero = hn::Zero(d);
  return hn::Or(hn::And(hn::Lt(r, zero), hn::Gt(y, zero)),
                hn::And(hn::Gt(r, zero), hn::Lt(y, zero)));
}

/// x - FloorDivide(x, y) * y, with the sign of y.
template <class V>
HWY_INLINE V FloorModulo(V x, V y) {
  const V r = TruncModulo(x, y);
  return hn::IfThenElse(IsOfOtherSign(hn::DFromV<V>(), r, y), hn::Add(r, y), r);
}

/// The quotient rounded down. floor(x / y) would be one too large where x / y is rounded up to an
/// integer.
template <class V>
HWY_INLINE V FloorDivide(V x, V y) {
  const hn::DFromV<V> d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V r = TruncModulo(x, y), ratio = hn::Div(x, y);
  V q = hn::Div(hn::Sub(x, r), y);
  q = hn::IfThenElse(IsOfOtherSign(d, r, y), hn::Sub(q, one), q);
  const V floor = hn::Floor(q);
  const V nearest =
      hn::IfThenElse(hn::Gt(hn::Sub(q, floor), hn::Set(d, 0.5f)), hn::Add(floor, one), floor);
  return hn::IfThenElse(hn::Eq(y, zero), ratio,
                        hn::IfThenElse(hn::Eq(q, zero), hn::CopySign(zero, ratio), nearest));
}

#if HWY_HAVE_FLOAT64
/// c[0] + c[1] x + ... + c[n-1] x^(n-1)
template <class D, class V, size_t n>
HWY_INLINE V Series(D d, V x, const double (&c)[n]) {
  V p = hn::Set(d, c[n - 1]);
  for (size_t i = n - 1; i-- > 0;) p = hn::MulAdd(p, x, hn::Set(d, c[i]));
  return p;
}

/// log2 |x| of doubles that were floats, to 37 bits also near 1; NaN gives any number.
template <class D, class V>
HWY_INLINE V Log2OfMagnitude(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  // |x| = 2^n m, m between the roots of 1/2 and 2.
  constexpr uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD, kOne = 0x3FF0000000000000;
  const V a = hn::Abs(x), one = hn::Set(d, 1.0);
  const auto raised = hn::Add(hn::BitCast(du, a), hn::Set(du, kOne - kRootOfHalf));
  const auto mantissa = hn::And(raised, hn::Set(du, 0x000FFFFFFFFFFFFF));
  const V m = hn::BitCast(d, hn::Add(mantissa, hn::Set(du, kRootOfHalf)));
  // In a double of exponent 52 the low bits are an integer.
  const auto biased = hn::Or(hn::ShiftRight<52>(raised), hn::BitCast(du, hn::Set(d, 0x1p52)));
  const V n = hn::Sub(hn::BitCast(d, biased), hn::Set(d, 0x1p52 + 1023));
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  constexpr double kSeries[] = {2.885390081789987, 0.9617966734515485, 0.5770835660048659,
                                0.41167376623771057, 0.3407120415619086};
  const V y = hn::MulAdd(s, Series(d, hn::Mul(s, s), kSeries), n);
  const V large = hn::IfThenElse(hn::Eq(a, hn::Inf(d)), a, y);
  return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Neg(hn::Inf(d)), large);
}

/// 2^x to 34 bits, for |x| < 1000.
template <class D, class V>
HWY_INLINE V Exp2InDouble(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, 0x1.8p52);
  const V shifted = hn::Add(x, rounder);
  const V rest = hn::Sub(x, hn::Sub(shifted, rounder));
  const auto exponent = hn::Add(hn::BitCast(du, shifted), hn::Set(du, 1023));
  constexpr double kSeries[] = {
      0.9999999999595618,   0.6931471805568324,    0.24022651213498092,    0.055504109063258665,
      0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296, 1.5303700711365693e-05};
  return hn::Mul(Series(d, rest, kSeries), hn::BitCast(d, hn::ShiftLeft<52>(exponent)));
}

/// x^y, right to one unit in the last place, with the limits of C's pow.
template <class V>
HWY_INLINE V Power(V x, V y) {
  const hn::DFromV<V> d;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const V magnitude = InDouble(x, y, [](auto wide, auto a, auto b) HWY_ATTR {
    const auto log = Log2OfMagnitude(wide, a);
    const auto most = hn::Set(wide, 400.0);  // far beyond the range of float
    const auto exponent = hn::Max(hn::Min(hn::Mul(b, log), most), hn::Neg(most));
    return Exp2InDouble(wide, hn::IfThenZeroElse(hn::Eq(log, hn::Zero(wide)), exponent));
  });
  const V half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto is_integer = hn::Or(hn::Eq(hn::Trunc(y), y), hn::Eq(hn::Abs(y), hn::Inf(d)));
  const auto is_odd = hn::AndNot(hn::Eq(hn::Trunc(half), half), is_integer);
  const auto is_imaginary =
      hn::AndNot(is_integer, hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(hn::Inf(d)))));
  V result = hn::IfThenElse(is_odd, hn::CopySign(magnitude, x), magnitude);
  result = hn::IfThenElse(is_imaginary, hn::NaN(d), result);
  result = KeepNaN(x, KeepNaN(y, result));
  return hn::IfThenElse(hn::Or(hn::Eq(y, zero), hn::Eq(x, one)), one, result);
}
#else
template <class V>
HWY_INLINE V Power(V x, V y) {
  return ByElement(x, y, [](float a, float b) { return std::pow(a, b); });
}
#endif

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
