#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

using Exact = long double;
constexpr double kMost = std::numeric_limits<double>::max();
constexpr double kLeast = std::numeric_limits<double>::min();

/// Numbers of both signs in [low, high]: of every magnitude, and evenly spread.
std::vector<double> numbers_within(double low, double high) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-60, 60),
      even(std::max(low, -40.0), std::min(high, 40.0));
  std::vector<double> result;
  for (int i = 0; i < 20000; ++i) {
    const double magnitude = std::exp2(exponent(random));
    for (const double x : {magnitude, -magnitude, even(random)}) {
      if (x >= low && x <= high) result.push_back(x);
    }
  }
  while (result.size() % 8 != 3) result.pop_back();  // a rest that fills no vector
  return result;
}

/// Expects f(x) to be `exact` of x, to `units` in the last place.
template <class F, class G>
void expect_values(const char* name, double low, double high, double units, const F& f,
                   const G& exact) {
  const std::vector<double> x = numbers_within(low, high);
  std::vector<double> y(x.size());
  f(x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const Exact expected = exact(static_cast<Exact>(x[i]));
    const double nearest = static_cast<double>(expected);
    if (y[i] == nearest) continue;
    if (std::fabs(nearest) < kLeast) {
      ASSERT_NEAR(y[i], nearest, kLeast) << name << " of " << x[i];
      continue;
    }
    const double unit = std::ldexp(1.0, std::ilogb(nearest) - 52);
    const auto error = static_cast<double>(std::fabs(static_cast<Exact>(y[i]) - expected));
    ASSERT_LE(error, units * unit) << name << " of " << x[i] << " is " << y[i];
  }
}

template <class G>
void expect_function(Function f, const char* name, double low, double high, double units,
                     const G& exact) {
  expect_values(
      name, low, high, units, [f](const double* x, double* y, int64_t n) { apply(f, x, y, n); },
      exact);
}

#define ET_EXPECT(name, op, low, high, units) \
  expect_function(Function::name, #op, low, high, units, [](Exact x) { return std::op(x); })

TEST(FunctionsOfDoubles, AreRightToFewUnits) {
  for_each_target([] {
    ET_EXPECT(Acos, acos, -1, 1, 4);
    ET_EXPECT(Acosh, acosh, 1, kMost, 4);
    ET_EXPECT(Asin, asin, -1, 1, 4);
    ET_EXPECT(Asinh, asinh, -kMost, kMost, 4);
    ET_EXPECT(Atan, atan, -kMost, kMost, 4);
    ET_EXPECT(Atanh, atanh, -1, 1, 4);
    ET_EXPECT(Cos, cos, -1e6, 1e6, 4);
    ET_EXPECT(Cosh, cosh, -710, 710, 4);
    ET_EXPECT(Erf, erf, -kMost, kMost, 4);
    ET_EXPECT(Exp, exp, -kMost, kMost, 4);
    ET_EXPECT(Expm1, expm1, -kMost, kMost, 4);
    ET_EXPECT(Log, log, 0, kMost, 4);
    ET_EXPECT(Log10, log10, 0, kMost, 4);
    ET_EXPECT(Log1p, log1p, -1, kMost, 4);
    ET_EXPECT(Log2, log2, 0, kMost, 4);
    ET_EXPECT(Sin, sin, -1e6, 1e6, 4);
    ET_EXPECT(Sinh, sinh, -710, 710, 4);
    ET_EXPECT(Sqrt, sqrt, 0, kMost, 4);
    ET_EXPECT(Tan, tan, -1e6, 1e6, 8);
  });
}

template <class G>
void expect_activation(Activation::Kind kind, const char* name, double low, double units,
                       const G& exact) {
  expect_values(
      name, low, 1e6, units,
      [kind](const double* x, double* y, int64_t n) { apply(kind, x, y, n); }, exact);
}

// Far below 0 they lose what rounding takes from their exponents: Gelu where products and sums are
// rounded one by one, GeluTanh always.
TEST(FunctionsOfDoubles, ActivationsAreRightToFewUnits) {
  using Kind = Activation::Kind;
  for_each_target([] {
    expect_activation(Kind::Gelu, "gelu", -5, 16,
                      [](Exact x) { return x / 2 * std::erfc(-x * std::sqrt(Exact{0.5})); });
    expect_activation(Kind::GeluTanh, "gelu_tanh", -4, 128, [](Exact x) {
      const Exact u =
          std::sqrt(Exact{2} / std::acos(Exact{-1})) * (x + Exact{0.044715} * x * x * x);
      return x / (1 + std::exp(-2 * u));
    });
    expect_activation(Kind::Sigmoid, "sigmoid", -700, 8,
                      [](Exact x) { return 1 / (1 + std::exp(-x)); });
    expect_activation(Kind::Tanh, "tanh", -1e6, 8, [](Exact x) { return std::tanh(x); });
  });
}

TEST(FunctionsOfDoubles, SpecialValuesAreThoseOfTheStandardLibrary) {
  const std::vector<double> x = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1, -1, 2, -2, 1e-310, 1e300};
#define ET_ROW(name, op)                                                           \
  {                                                                                \
    std::vector<double> y(x.size());                                               \
    apply(Function::name, x.data(), y.data(), static_cast<int64_t>(x.size()));     \
    for (size_t i = 0; i < x.size(); ++i) {                                        \
      const double expected = in_double::op(x[i]);                                 \
      ASSERT_EQ(std::isnan(y[i]), std::isnan(expected)) << #op << " " << x[i];     \
      if (std::isnan(expected)) continue;                                          \
      if (std::isinf(expected)) {                                                  \
        ASSERT_EQ(y[i], expected) << #op << " " << x[i];                           \
      }                                                                            \
      ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << #op << " " << x[i]; \
    }                                                                              \
  }
  for_each_target([&] { ET_FUNCTIONS(ET_ROW) });
#undef ET_ROW
}

}  // namespace
}  // namespace executorch::cpu
