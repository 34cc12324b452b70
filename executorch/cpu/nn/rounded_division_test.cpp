#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/testing.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace executorch::cpu {
namespace {

using Function2 = double (*)(double, double);

double floor_modulo(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? static_cast<float>(r + y) : r;
}

/// Pairs of special numbers, of numbers of any exponent, and of usual ones.
void operands(std::vector<float>& a, std::vector<float>& b) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> special = {0, 0x1p-149f, 0x1p-126f, 0.1f,     0.5f,     0.7f,  1,
                                2, 2.4f,      3,         16777215, 16777216, 1e30f, kInfinity};
  for (size_t i = 0, n = special.size(); i < n; ++i) special.push_back(-special[i]);
  special.push_back(NAN);
  for (const float x : special) {
    for (const float y : special) a.push_back(x), b.push_back(y);
  }
  std::mt19937 bits(7);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 20000; ++i) {
    a.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits())));
    b.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits())));
    a.push_back(normal(bits) * 100);
    b.push_back(normal(bits));
  }
}

/// The units in the last place of a float between y and the result in double.
double units(float y, double expected) {
  const float rounded = static_cast<float>(expected);
  if (std::isnan(expected) || std::isinf(rounded) || std::isinf(y)) {
    return (std::isnan(y) && std::isnan(expected)) || y == rounded ? 0 : INFINITY;
  }
  if (std::isnan(y) || std::signbit(y) != std::signbit(expected)) return INFINITY;
  int exponent;
  std::frexp(expected, &exponent);
  return std::fabs(y - expected) / std::fmax(std::ldexp(1.0, exponent - 24), 0x1p-149);
}

ET_ON_EACH_TARGET(RoundedDivision);

void expect_right(Arithmetic op, Function2 expected, double most_units) {
  std::vector<float> a, b;
  operands(a, b);
  std::vector<float> y(a.size());
  const auto n = static_cast<int64_t>(a.size());
  apply(op, Type::F32, {a.data()}, {b.data()}, y.data(), n);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(units(y[i], expected(a[i], b[i])), most_units)
        << a[i] << ", " << b[i] << ": " << y[i] << ", expected " << expected(a[i], b[i]);
  }
}

TEST_P(RoundedDivision, RemaindersAreExact) {
  expect_right(
      Arithmetic::TruncModulo, [](double x, double y) { return std::fmod(x, y); }, 0);
  expect_right(Arithmetic::FloorModulo, floor_modulo, 0);
}

TEST_P(RoundedDivision, PowersAreRightToOneUnit) {
  expect_right(
      Arithmetic::Power, [](double x, double y) { return std::pow(x, y); }, 1);
}

TEST_P(RoundedDivision, QuotientsAreRoundedDownOrTowardsZero) {
  std::vector<float> a, b;
  operands(a, b);
  std::vector<float> floor(a.size()), trunc(a.size());
  const auto n = static_cast<int64_t>(a.size());
  apply(Arithmetic::FloorDivide, Type::F32, {a.data()}, {b.data()}, floor.data(), n);
  apply(Arithmetic::TruncDivide, Type::F32, {a.data()}, {b.data()}, trunc.data(), n);
  for (size_t i = 0; i < a.size(); ++i) {
    const float x = a[i], y = b[i], quotient = x / y;
    EXPECT_EQ(units(trunc[i], std::trunc(quotient)), 0) << x << ", " << y;
    if (y == 0 || !std::isfinite(x) || std::isnan(y)) {
      EXPECT_EQ(units(floor[i], y == 0 ? quotient : NAN), 0) << x << ", " << y;
    } else if (std::fabs(quotient) < 0x1p22f) {
      const double r = std::fmod(x, y);
      const double whole = std::round((x - r) / y);
      EXPECT_EQ(floor[i], r != 0 && (r < 0) != (y < 0) ? whole - 1 : whole) << x << ", " << y;
    }
  }
  // 1 / 0.1f is rounded up to 10, and is less.
  const float one = 1, tenth = 0.1f;
  float y;
  apply(Arithmetic::FloorDivide, Type::F32, {&one}, {&tenth}, &y, 1);
  EXPECT_EQ(y, 9);
}

}  // namespace
}  // namespace executorch::cpu
