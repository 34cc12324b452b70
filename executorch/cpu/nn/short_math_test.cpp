#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/testing.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace executorch::cpu {
namespace {

using Kind = Activation::Kind;

double expected(Kind kind, double x) {
  const auto logistic = [](double y) { return 1 / (1 + std::exp(-y)); };
  switch (kind) {
    case Kind::Gelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Kind::GeluTanh:
      return x * logistic(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
    case Kind::Silu:
      return x * logistic(x);
    case Kind::Sigmoid:
      return logistic(x);
    default:
      return std::tanh(x);
  }
}

/// The distance of neighbours about y, of numbers with `digits` bits and normal from 2^lowest on.
double unit(double y, int digits, int lowest) {
  int exponent;
  std::frexp(y, &exponent);
  return std::ldexp(1.0, std::max(exponent - 1, lowest) - digits + 1);
}

constexpr double kSmallest = 0x1p-119;  // results below may be 0

/// All numbers of T against double. NaN and infinities are as x * gate(x) has them.
template <class T>
void expect_all_right(Type type, int digits, int lowest) {
  constexpr size_t kAll = 65536;
  std::vector<T> x(kAll), y(kAll);
  for (size_t i = 0; i < kAll; ++i) x[i].bits = static_cast<uint16_t>(i);
  std::vector<float> from(kAll), to(kAll);
  convert(x.data(), from.data(), kAll);
  for (const Kind kind : {Kind::Gelu, Kind::GeluTanh, Kind::Silu, Kind::Sigmoid, Kind::Tanh}) {
    apply({kind}, type, x.data(), y.data(), kAll);
    convert(y.data(), to.data(), kAll);
    for (size_t i = 0; i < kAll; ++i) {
      const double want = expected(kind, from[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(to[i])) << "of " << from[i] << ": " << to[i];
      } else if (std::isinf(want)) {
        ASSERT_EQ(to[i], want);
      } else {
        // Half of a unit is the rounding.
        constexpr double kUnits = 0.52;
        ASSERT_LE(std::fabs(to[i] - want), kUnits * unit(want, digits, lowest) + kSmallest)
            << "kind " << static_cast<int>(kind) << " of " << from[i] << ": " << to[i]
            << ", expected " << want;
      }
    }
  }
}

TEST(ShortMath, ActivationsOfAllNumbersOfSixteenBitsAreRight) {
  for_each_target([] {
    expect_all_right<F16>(Type::F16, 11, -14);
    expect_all_right<BF16>(Type::BF16, 8, -126);
  });
}

}  // namespace
}  // namespace executorch::cpu
