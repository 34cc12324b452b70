#include <executorch/cpu/nn/magnitude.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

ET_ON_EACH_TARGET(Magnitude_);

TEST_P(Magnitude_, IsRoundedOnceForAnyNumberOfPairs) {
  for (int64_t n : {0, 1, 2, 3, 5, 8, 17, 20000}) {
    SCOPED_TRACE(n);
    const auto count = static_cast<size_t>(n);
    const std::vector<float> x = normal_floats(2 * count);
    std::vector<float> y(count + 1, 7.0f);
    magnitudes(x.data(), y.data(), n);
    for (size_t i = 0; i < count; ++i) {
      const double re = x[2 * i], im = x[2 * i + 1];
      ASSERT_EQ(y[i], static_cast<float>(std::sqrt(re * re + im * im))) << i;
    }
    EXPECT_EQ(y[count], 7.0f) << "behind the last";
  }
}

TEST_P(Magnitude_, OfNumbersAtTheEdgesIsThatOfHypot) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  const float edges[] = {0.0f, -0.0f,     1.0f,     kTiny,     3 * kTiny,
                         kMax, -kMax / 2, INFINITY, -INFINITY, NAN};
  for (const float re : edges) {
    for (const float im : edges) {
      const float pair[] = {re, im};
      const float want = std::hypot(re, im);
      float found;
      magnitudes(pair, &found, 1);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(found)) << re << " " << im;
      } else {
        EXPECT_EQ(found, want) << re << " " << im;
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
