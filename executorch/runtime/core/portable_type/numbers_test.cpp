// Half, BFloat16, complex and Scalar, and numbers without arithmetic.
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

#include <c10/util/irange.h>
#include <c10/util/overflows.h>
#include <c10/util/safe_numerics.h>
#include <executorch/runtime/core/portable_type/bfloat16_math.h>
#include <executorch/runtime/core/portable_type/bits_types.h>
#include <executorch/runtime/core/portable_type/complex.h>
#include <executorch/runtime/core/portable_type/qint_types.h>
#include <executorch/runtime/core/portable_type/scalar.h>

namespace executorch::runtime::etensor {
namespace {

/// The value of a binary float of 16 bits, from the definition of the format.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * INFINITY;
  const double significand = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - fraction_bits);
}

template <typename T>
void check_all_values(int exponent_bits, int fraction_bits) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const T value(static_cast<unsigned short>(bits), T::from_bits());
    const double expected = value_of(value.x, exponent_bits, fraction_bits);
    const float widened = value;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(widened)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(widened), expected) << bits;
    ASSERT_EQ(T(widened).x, bits);
  }
}

TEST(Half, EveryValueRoundTrips) {
  check_all_values<Half>(5, 10);
}
TEST(BFloat16, EveryValueRoundTrips) {
  check_all_values<BFloat16>(8, 7);
}

/// Between two neighbours: the middle goes to the even one, anything else to the nearer.
template <typename T>
void check_rounding(uint32_t largest_finite) {
  for (uint32_t bits = 0; bits < largest_finite; ++bits) {
    const T low(static_cast<unsigned short>(bits), T::from_bits());
    const T high(static_cast<unsigned short>(bits + 1), T::from_bits());
    // Exact in float; the sum is not always.
    const auto middle =
        static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    ASSERT_EQ(T(middle).x, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).x, bits);
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).x, bits + 1);
    ASSERT_EQ(T(-middle).x, T(middle).x | 0x8000);
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  check_rounding<Half>(0x7bff);
}
TEST(BFloat16, RoundsToNearestTiesToEven) {
  check_rounding<BFloat16>(0x7f7f);
}

TEST(Half, OverflowBecomesInfinity) {
  EXPECT_EQ(Half(65519.0f).x, 0x7bff);
  EXPECT_EQ(Half(65520.0f).x, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).x, 0xfc00);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).x, 0x7f80);
}

template <typename T>
void check_limits() {
  using Limits = std::numeric_limits<T>;
  EXPECT_TRUE(std::isinf(static_cast<float>(Limits::infinity())));
  EXPECT_TRUE(std::isnan(static_cast<float>(Limits::quiet_NaN())));
  EXPECT_EQ(static_cast<float>(Limits::lowest()), -static_cast<float>(Limits::max()));
  EXPECT_EQ(static_cast<float>(Limits::epsilon()), std::ldexp(1.0f, 1 - Limits::digits));
  EXPECT_EQ(static_cast<float>(Limits::min()), std::ldexp(1.0f, Limits::min_exponent - 1));
  EXPECT_NE(T(1.0f + static_cast<float>(Limits::epsilon())).x, T(1.0f).x);
}

TEST(Half, LimitsAreThoseOfTheFormat) {
  check_limits<Half>();
}
TEST(BFloat16, LimitsAreThoseOfTheFormat) {
  check_limits<BFloat16>();
}

TEST(Half, ArithmeticRoundsOnce) {
  const Half a = 1.0f;
  Half b = a + a / Half(3.0f);
  EXPECT_EQ(b.x, Half(1.0f + static_cast<float>(Half(1.0f / 3.0f))).x);
  b += 1;
  EXPECT_EQ(static_cast<float>(-b), -static_cast<float>(b));
  EXPECT_EQ(a + 0.0001f, 1.0001f);
  EXPECT_EQ(std::exp(Half(0.0f)).x, a.x);
}

TEST(Complex, ArithmeticFollowsTheDefinition) {
  const complex<double> a(1, 2);
  const complex<double> b(3, -4);
  EXPECT_EQ(a * b, complex<double>(11, 2));
  EXPECT_EQ((a * b) / b, a);
  EXPECT_EQ(-a + a, complex<double>());
  EXPECT_EQ(std::abs(b), 5.0);
  const complex<float> huge(1e30f, 1e30f);
  EXPECT_EQ(huge / huge, complex<float>(1, 0));
}

TEST(Scalar, WiderKindsAreReadable) {
  EXPECT_EQ(Scalar().to<int64_t>(), 0);
  EXPECT_EQ(Scalar(3).to<double>(), 3.0);
  EXPECT_EQ(Scalar(true).to<int64_t>(), 1);
  EXPECT_TRUE(Scalar(true).isIntegral(/*includeBool=*/true));
  EXPECT_FALSE(Scalar(true).isIntegral(/*includeBool=*/false));
  EXPECT_TRUE(Scalar(1.5f).isFloatingPoint());
  EXPECT_EQ(Scalar(Half(0.5f)).to<double>(), 0.5);
}

TEST(ScalarDeathTest, NarrowerKindsAbort) {
  EXPECT_DEATH(Scalar(1.5).to<int64_t>(), "not an integer");
  EXPECT_DEATH(Scalar(1).to<bool>(), "not a boolean");
}

TEST(SafeNumerics, OverflowIsReported) {
  uint64_t out;
  EXPECT_FALSE(c10::mul_overflows(uint64_t{1} << 32, uint64_t{1} << 31, &out));
  EXPECT_TRUE(c10::mul_overflows(uint64_t{1} << 32, uint64_t{1} << 32, &out));
  EXPECT_TRUE(c10::overflows<int8_t>(128));
  EXPECT_FALSE(c10::overflows<uint8_t>(255));
  EXPECT_TRUE(c10::overflows<int64_t>(1e30));
  EXPECT_TRUE((c10::overflows<uint8_t, int>(-1, /*strict_unsigned=*/true)));
}

TEST(Irange, CountsAndIsEmptyBackwards) {
  int sum = 0;
  for (const auto i : c10::irange(2, 5)) sum += i;
  EXPECT_EQ(sum, 9);
  for (const auto i : c10::irange(3, 1)) {
    FAIL() << i;
  }
}

template <class T, class Integer>
constexpr bool is_opaque() {
  return std::is_same_v<typename T::underlying, Integer> && sizeof(T) == sizeof(Integer) &&
         alignof(T) == alignof(Integer) && std::is_trivial_v<T> && std::is_standard_layout_v<T> &&
         !std::is_convertible_v<Integer, T>;
}

TEST(OpaqueNumbers, AreTypesOfTheirOwnOverIntegers) {
  static_assert(is_opaque<qint8, int8_t>() && is_opaque<quint8, uint8_t>());
  static_assert(is_opaque<qint32, int32_t>() && is_opaque<bits16, uint16_t>());
  static_assert(is_opaque<quint4x2, uint8_t>() && is_opaque<bits4x2, uint8_t>());
  static_assert(!std::is_convertible_v<quint8, bits8> && !std::is_convertible_v<bits8, bits1x8>);
  EXPECT_EQ(qint32(-7).val_, -7);
  EXPECT_EQ(bits8(200).val_, 200);
}

}  // namespace
}  // namespace executorch::runtime::etensor
