#include <executorch/kernels/portable/internal/vector_math.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace torch::executor::native::internal;

namespace {

/// Largest |f(x) - g(x)| in units of 2^-24 times the exponent of g(x), over a dense grid.
template <class F, class G>
double worst(F f, G g, double lo, double hi) {
  double result = 0;
  for (int i = 0; i <= 200000; ++i) {
    const float x = static_cast<float>(lo + (hi - lo) * i / 200000);
    const double expected = g(static_cast<double>(x));
    int exponent;
    std::frexp(expected, &exponent);
    const double unit = std::fmax(std::ldexp(1.0, exponent - 24), 0x1p-149);
    result = std::fmax(result, std::fabs(f(x) - expected) / unit);
  }
  return result;
}

float exp_float(float x) {
  return exp_of(x);
}
float tanh_float(float x) {
  return tanh_of(x);
}
float erf_float(float x) {
  return erf_of(x);
}
float cdf_float(float x) {
  return normal_cdf(x);
}

}  // namespace

TEST(VectorMath, ExpIsAccurateOverItsRange) {
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(worst(exp_float, exact, -103.9, 88.7), 4);
  EXPECT_LE(worst(exp_float, exact, -1e-3, 1e-3), 4);
}

TEST(VectorMath, TanhIsAccurateEverywhere) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(worst(tanh_float, exact, -12, 12), 4);
  EXPECT_LE(worst(tanh_float, exact, -1e-2, 1e-2), 4);
}

TEST(VectorMath, ErfIsAccurateEverywhere) {
  const auto exact = [](double x) { return std::erf(x); };
  EXPECT_LE(worst(erf_float, exact, -6, 6), 4);
  EXPECT_LE(worst(erf_float, exact, -1e-2, 1e-2), 4);
}

TEST(VectorMath, NormalCdfKeepsItsTailToAFewBits) {
  const auto exact = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  EXPECT_LE(worst(cdf_float, exact, 0, 6), 4);
  // exp(-x^2 / 2) magnifies the rounding of x^2 / 2: by that much.
  EXPECT_LE(worst(cdf_float, exact, -5, 0), 4 + 2.0 * 25 / 2);
}

TEST(VectorMath, SpecialValuesAreThoseOfTheStandardLibrary) {
  EXPECT_EQ(exp_of(INFINITY), INFINITY);
  EXPECT_EQ(exp_of(-INFINITY), 0.0f);
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(tanh_of(INFINITY), 1.0f);
  EXPECT_EQ(tanh_of(-INFINITY), -1.0f);
  EXPECT_TRUE(std::signbit(tanh_of(-0.0f)));
  EXPECT_EQ(erf_of(-INFINITY), -1.0f);
  EXPECT_EQ(normal_cdf(INFINITY), 1.0f);
  EXPECT_EQ(normal_cdf(-INFINITY), 0.0f);
  for (float value : {exp_of(NAN), tanh_of(NAN), erf_of(NAN), normal_cdf(NAN)}) {
    EXPECT_TRUE(std::isnan(value));
  }
}
