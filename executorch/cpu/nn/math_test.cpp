#include <executorch/cpu/testing.h>
#include <executorch/cpu/types.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/math_test.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/function.h>
#include <executorch/cpu/nn/functions-inl.h>
#include <executorch/cpu/storage-inl.h>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

template <class F>
void Map(const std::vector<float>& x, std::vector<float>& y, const F& f) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < x.size(); i += lanes) {
    const size_t n = std::min(lanes, x.size() - i);
    StoreFloatsN(f(d, LoadFloatsN(d, &x[i], n)), d, &y[i], n);
  }
}
#define ET_MAP(name)                                                   \
  void Map##name(const std::vector<float>& x, std::vector<float>& y) { \
    Map(x, y, [](auto d, auto v) HWY_ATTR { return name(d, v); });     \
  }
#define ET_ROW(name, op) ET_MAP(name)
ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
ET_MAP(Exp2OfNegative)
ET_MAP(Tanh)
ET_MAP(NormalCdf)
ET_MAP(Sigmoid)
ET_MAP(Gelu)
ET_MAP(GeluTanh)
ET_MAP(Silu)
ET_MAP(HardSwish)
#undef ET_MAP

void MapAtan2(const std::vector<float>& y, const std::vector<float>& x, std::vector<float>& angle) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < x.size(); i += hn::Lanes(d)) {
    const size_t n = std::min(hn::Lanes(d), x.size() - i);
    StoreFloatsN(Atan2(LoadFloatsN(d, &y[i], n), LoadFloatsN(d, &x[i], n)), d, &angle[i], n);
  }
}

void ThroughF16(const std::vector<float>& x, std::vector<F16>& half, std::vector<float>& y) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < x.size(); i += hn::Lanes(d)) {
    StoreFloats(LoadFloats(d, &x[i]), d, &half[i]);
    StoreFloats(LoadFloats(d, &half[i]), d, &y[i]);
  }
}
void ThroughBF16(const std::vector<float>& x, std::vector<BF16>& half, std::vector<float>& y) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < x.size(); i += hn::Lanes(d)) {
    StoreFloats(LoadFloats(d, &x[i]), d, &half[i]);
    StoreFloats(LoadFloats(d, &half[i]), d, &y[i]);
  }
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {
namespace {

#define ET_ROW(name, op) HWY_EXPORT(Map##name);
ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
HWY_EXPORT(MapExp2OfNegative);
HWY_EXPORT(MapTanh);
HWY_EXPORT(MapNormalCdf);
HWY_EXPORT(MapSigmoid);
HWY_EXPORT(MapGelu);
HWY_EXPORT(MapGeluTanh);
HWY_EXPORT(MapSilu);
HWY_EXPORT(MapHardSwish);
HWY_EXPORT(MapAtan2);
HWY_EXPORT(ThroughF16);
HWY_EXPORT(ThroughBF16);

/// Calls f once for each instruction set that is compiled in and that the machine has.
/// Floats of every sign and exponent in [low, high], mantissas spread evenly.
std::vector<float> floats_in(float low, float high) {
  std::vector<float> result;
  for (uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 30011) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (x >= low && x <= high) result.push_back(x);
  }
  return result;
}

/// Checks |y - f(x)| <= bound(x) units in the last place of f(x).
template <class Map, class F, class Bound>
void expect_ulps(const Map& map, const F& f, float low, float high, const Bound& bound) {
  const std::vector<float> x = floats_in(low, high);
  std::vector<float> y(x.size());
  map(x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = f(static_cast<double>(x[i]));
    if (std::isinf(static_cast<float>(expected))) {
      ASSERT_EQ(y[i], static_cast<float>(expected)) << "of " << x[i];
      continue;
    }
    int exponent;
    std::frexp(expected, &exponent);
    const double unit = std::fmax(std::ldexp(1.0, exponent - 24), 0x1p-149);
    ASSERT_LE(std::fabs(y[i] - expected), bound(x[i]) * unit)
        << "of " << x[i] << ": " << y[i] << ", expected " << expected;
  }
}

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

constexpr auto kFour = [](double) { return 4.0; };
constexpr float kMax = std::numeric_limits<float>::max();

#define ET_TARGETS(name) [](const auto& x, auto& y) { HWY_DYNAMIC_DISPATCH(name)(x, y); }

TEST(Math, ExpTanhErfAreRightToFourUnits) {
  for_each_target([] {
    // Results beyond the largest float count as infinite from a rounding error on.
    expect_ulps(
        ET_TARGETS(MapExp), [](double x) { return std::exp(x); }, -kMax, 88.72f, kFour);
    expect_ulps(
        ET_TARGETS(MapTanh), [](double x) { return std::tanh(x); }, -kMax, kMax, kFour);
    expect_ulps(
        ET_TARGETS(MapErf), [](double x) { return std::erf(x); }, -kMax, kMax, kFour);
    expect_ulps(ET_TARGETS(MapNormalCdf), normal_cdf, 0, kMax, kFour);
  });
}

TEST(Math, LogarithmsAreRightToFourUnits) {
  for_each_target([] {
    expect_ulps(
        ET_TARGETS(MapLog), [](double x) { return std::log(x); }, 0x1p-149f, kMax, kFour);
    expect_ulps(
        ET_TARGETS(MapLog2), [](double x) { return std::log2(x); }, 0x1p-149f, kMax, kFour);
    const std::vector<float> powers = {0x1p-149f, 0x1p-126f, 0.5f, 1, 8, 0x1p127f};
    std::vector<float> y(powers.size());
    HWY_DYNAMIC_DISPATCH(MapLog2)(powers, y);
    EXPECT_EQ(y, (std::vector<float>{-149, -126, -1, 0, 3, 127}));
  });
}

// The arguments of which results are finite, and the bound in units.
#define ET_EXPECT(name, function, low, high, units)                           \
  expect_ulps(                                                                \
      ET_TARGETS(Map##name), [](double x) { return function(x); }, low, high, \
      [](double) { return units; })

TEST(Math, FunctionsAreRight) {
  for_each_target([] {
    ET_EXPECT(Acos, std::acos, -1.0f, 1.0f, 4.0);
    ET_EXPECT(Acosh, std::acosh, 1.0f, kMax, 8.0);
    ET_EXPECT(Asin, std::asin, -1.0f, 1.0f, 4.0);
    ET_EXPECT(Asinh, std::asinh, -kMax, kMax, 8.0);
    ET_EXPECT(Atan, std::atan, -kMax, kMax, 4.0);
    ET_EXPECT(Atanh, std::atanh, -0.9999999f, 0.9999999f, 8.0);
    ET_EXPECT(Cos, std::cos, -kMax, kMax, 4.0);
    ET_EXPECT(Cosh, std::cosh, -89.41f, 89.41f, 8.0);
    ET_EXPECT(Expm1, std::expm1, -kMax, 88.72f, 4.0);
    ET_EXPECT(Log10, std::log10, 0x1p-149f, kMax, 4.0);
    ET_EXPECT(Log1p, std::log1p, -0.9999999f, kMax, 4.0);
    ET_EXPECT(Sin, std::sin, -kMax, kMax, 4.0);
    ET_EXPECT(Sinh, std::sinh, -89.41f, 89.41f, 8.0);
    ET_EXPECT(Tan, std::tan, -kMax, kMax, 8.0);
  });
}

TEST(Math, FunctionsOfSpecialValuesAreThoseOfTheStandardLibrary) {
  const std::vector<float> x = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1, -1, 2, -2, 1e30f, -1e30f};
#define ET_ROW(name, op)                                                                  \
  {                                                                                       \
    std::vector<float> y(x.size());                                                       \
    HWY_DYNAMIC_DISPATCH(Map##name)(x, y);                                                \
    for (size_t i = 0; i < x.size(); ++i) {                                               \
      const auto expected = static_cast<float>(in_double::op(static_cast<double>(x[i]))); \
      ASSERT_EQ(std::isnan(y[i]), std::isnan(expected)) << #op << " " << x[i];            \
      if (std::isnan(expected)) continue;                                                 \
      const float bound = std::isinf(expected) ? 0 : 8 * 6e-8f * std::fabs(expected);     \
      ASSERT_TRUE(y[i] == expected || std::fabs(y[i] - expected) <= bound)                \
          << #op << " " << x[i] << ": " << y[i] << ", expected " << expected;             \
      ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << #op << " " << x[i];        \
    }                                                                                     \
  }
  for_each_target([&] { ET_FUNCTIONS(ET_ROW) });
#undef ET_ROW
}

TEST(Math, AnglesOfPointsAreRight) {
  std::vector<float> values = {INFINITY, NAN, 0, 0x1p-149f, 1e-30f, 0.3f, 1, 1.5f, 40, 1e30f, kMax};
  for (const float x : std::vector<float>(values)) values.push_back(-x);
  std::vector<float> y, x;
  for (const float a : values) {
    for (const float b : values) {
      y.push_back(a);
      x.push_back(b);
    }
  }
  for_each_target([&] {
    std::vector<float> found(x.size());
    HWY_DYNAMIC_DISPATCH(MapAtan2)(y, x, found);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::atan2(static_cast<double>(y[i]), static_cast<double>(x[i]));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(found[i])) << y[i] << " " << x[i];
        continue;
      }
      ASSERT_LE(std::fabs(found[i] - expected), 4 * 6e-8 * std::fabs(expected) + 0x1p-148)
          << y[i] << " " << x[i];
      ASSERT_EQ(std::signbit(found[i]), std::signbit(expected)) << y[i] << " " << x[i];
    }
  });
}

TEST(Math, Exp2OfNegativeFlushesWhatIsDenormal) {
  for_each_target([] {
    expect_ulps(
        ET_TARGETS(MapExp2OfNegative), [](double x) { return std::exp2(x); }, -126.0f, 0, kFour);
    expect_ulps(
        ET_TARGETS(MapExp2OfNegative), [](double) { return 0.0; }, -kMax, -127.0f, kFour);
  });
}

TEST(Math, NormalCdfKeepsItsTail) {
  for_each_target([] {
    const auto bound = [](double x) { return 12 + 3 * x * x; };
    expect_ulps(ET_TARGETS(MapNormalCdf), normal_cdf, -12.9f, 0, bound);
    expect_ulps(
        ET_TARGETS(MapGelu), [](double x) { return x * normal_cdf(x); }, -12.9f, kMax,
        [](double x) { return x < 0 ? 13 + 3 * x * x : 8; });
  });
}

TEST(Math, ActivationsAreRight) {
  for_each_target([] {
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    expect_ulps(ET_TARGETS(MapSigmoid), sigmoid, -87.0f, kMax, [](double) { return 8.0; });
    expect_ulps(
        ET_TARGETS(MapSilu), [&](double x) { return x * sigmoid(x); }, -87.0f, kMax,
        [](double) { return 8.0; });
    // The exponent -2u is rounded a few times; exp magnifies that by |2u|.
    const auto twice_u = [](double x) {
      return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    };
    expect_ulps(
        ET_TARGETS(MapGeluTanh), [&](double x) { return x / (1 + std::exp(-twice_u(x))); }, -9.0f,
        1e10f, [&](double x) { return 6 + (x < 0 ? 4 * std::fabs(twice_u(x)) : 0); });
    expect_ulps(
        ET_TARGETS(MapHardSwish),
        [](double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }, -2.5f, 1e37f, kFour);
  });
}

TEST(Math, SpecialValuesAreThoseOfTheStandardLibrary) {
  for_each_target([] {
    const std::vector<float> x = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f};
    const auto expect = [&](const auto& map, std::vector<float> expected) {
      std::vector<float> y(x.size());
      map(x, y);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(std::isnan(y[i]), std::isnan(expected[i])) << x[i];
        if (std::isnan(expected[i])) continue;
        EXPECT_EQ(y[i], expected[i]) << x[i];
        EXPECT_EQ(std::signbit(y[i]), std::signbit(expected[i])) << x[i];
      }
    };
    expect(ET_TARGETS(MapExp), {INFINITY, 0, NAN, 1, 1});
    expect(ET_TARGETS(MapLog), {INFINITY, NAN, NAN, -INFINITY, -INFINITY});
    expect(ET_TARGETS(MapLog2), {INFINITY, NAN, NAN, -INFINITY, -INFINITY});
    expect(ET_TARGETS(MapTanh), {1, -1, NAN, 0, -0.0f});
    expect(ET_TARGETS(MapErf), {1, -1, NAN, 0, -0.0f});
    expect(ET_TARGETS(MapSigmoid), {1, 0, NAN, 0.5f, 0.5f});
    expect(ET_TARGETS(MapGelu), {INFINITY, NAN, NAN, 0, -0.0f});
    expect(ET_TARGETS(MapSilu), {INFINITY, NAN, NAN, 0, -0.0f});
    expect(ET_TARGETS(MapHardSwish), {INFINITY, NAN, NAN, 0, -0.0f});
  });
}

/// The 16-bit type with `mantissa` bits nearest to x, ties to even, by arithmetic in double.
double rounded(double x, int mantissa, int lowest_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - 1, lowest_exponent) - mantissa;
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

TEST(Storage, HalfTypesRoundToNearestEven) {
  std::vector<float> x = floats_in(-kMax, kMax);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {  // every BF16, and halfway to the next one
    x.push_back(std::bit_cast<float>(bits << 16));
    x.push_back(std::bit_cast<float>(bits << 16 | 0x8000));
  }
  for (int i = 0; i < 4096; ++i) x.push_back(std::ldexp(static_cast<float>(i), -11));
  x.insert(x.end(), {INFINITY, -INFINITY, NAN, std::bit_cast<float>(0x7F800001u),
                     std::bit_cast<float>(0xFFFFFFFFu)});
  x.resize((x.size() + 63) / 64 * 64);
  for_each_target([&] {
    std::vector<F16> f16(x.size());
    std::vector<BF16> bf16(x.size());
    std::vector<float> y(x.size());
    const auto check = [&](int mantissa, int lowest, double limit) {
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) {
          ASSERT_TRUE(std::isnan(y[i]));
          continue;
        }
        const double expected = rounded(x[i], mantissa, lowest);
        ASSERT_EQ(y[i], std::fabs(expected) > limit ? std::copysign(INFINITY, x[i]) : expected)
            << "of " << x[i];
      }
    };
    HWY_DYNAMIC_DISPATCH(ThroughF16)(x, f16, y);
    check(10, -14, 65504);
    HWY_DYNAMIC_DISPATCH(ThroughBF16)(x, bf16, y);
    check(7, -126, 0x1.FEp127);
  });
}

}  // namespace
}  // namespace executorch::cpu
#endif  // HWY_ONCE
