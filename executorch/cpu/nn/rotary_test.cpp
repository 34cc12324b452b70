#include <executorch/cpu/nn/rotary.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

ET_ON_EACH_TARGET(Rotary);

TEST_P(Rotary, RotatesEachElementWithThatOfTheOtherHalf) {
  for (int64_t half : {1, 3, 4, 8, 15, 16, 32, 33, 64}) {
    SCOPED_TRACE(half);
    const auto n = static_cast<size_t>(2 * half), h = static_cast<size_t>(half);
    const std::vector<float> x = normal_floats(n), cos = normal_floats(n, 2),
                             sin = normal_floats(n, 3);
    std::vector<float> y(n + 1, 7.0f);
    rotate_halves(Type::F32, x.data(), cos.data(), sin.data(), half, y.data());
    for (size_t i = 0; i < n; ++i) {
      const double other = i < h ? -x[i + h] : x[i - h];
      const double by_cos = double{x[i]} * cos[i], by_sin = other * sin[i];
      ASSERT_NEAR(y[i], by_cos + by_sin, 0x1p-23 * (std::fabs(by_cos) + std::fabs(by_sin))) << i;
    }
    EXPECT_EQ(y[n], 7.0f) << "behind the row";
  }
}

// Of numbers that bfloat16 holds.
BF16 narrow(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return {static_cast<uint16_t>(bits >> 16)};
}
float widened(BF16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

TEST_P(Rotary, TakesHalfPrecision) {
  constexpr size_t n = 22;
  std::vector<BF16> x(n), cos(n), sin(n), y(n);
  for (size_t i = 0; i < n; ++i) {
    x[i] = narrow(static_cast<float>(i));
    cos[i] = narrow(i % 2 == 0 ? 1.0f : 0.0f);
    sin[i] = narrow(i % 2 == 0 ? 0.0f : 1.0f);
  }
  rotate_halves(Type::BF16, x.data(), cos.data(), sin.data(), n / 2, y.data());
  for (size_t i = 0; i < n; ++i) {
    const float other = i < n / 2 ? -static_cast<float>(i + n / 2) : static_cast<float>(i - n / 2);
    EXPECT_EQ(widened(y[i]), i % 2 == 0 ? static_cast<float>(i) : other) << i;
  }
}

}  // namespace
}  // namespace executorch::cpu
