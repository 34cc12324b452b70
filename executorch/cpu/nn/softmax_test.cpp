#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/nn/softmax.h>
#include <executorch/cpu/nn/testing.h>

#include <algorithm>
#include <cmath>

namespace executorch::cpu {
namespace {

/// Largest error of y against softmax in double, in units of 2^-24 (of the result, or for the
/// logarithm of the largest score).
void expect_softmax(int64_t outer, int64_t n, int64_t inner, bool log) {
  SCOPED_TRACE(testing::Message() << outer << " x " << n << " x " << inner << " log " << log);
  const std::vector<float> x = normal_floats(static_cast<size_t>(outer * n * inner));
  std::vector<float> y(x.size());
  const Softmax softmax{Type::F32, log, outer, n, inner, x.data(), y.data()};
  run(softmax);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < inner; ++c) {
      const auto at = [&](int64_t i) { return static_cast<size_t>((o * n + i) * inner + c); };
      double max = -INFINITY, sum = 0;
      for (int64_t i = 0; i < n; ++i) max = std::max<double>(max, x[at(i)]);
      for (int64_t i = 0; i < n; ++i) sum += std::exp(x[at(i)] - max);
      for (int64_t i = 0; i < n; ++i) {
        const double shifted = x[at(i)] - max, share = std::exp(shifted) / sum;
        if (log) {
          ASSERT_NEAR(y[at(i)], shifted - std::log(sum), 16 * 0x1p-24 * (8 + std::log(sum)));
        } else {
          // exp keeps what rounding x - max lost; a run's sum is off by log2 of its length.
          ASSERT_NEAR(y[at(i)], share, 16 * 0x1p-24 * share * (8 - shifted));
        }
      }
    }
  }
  expect_same_on_any_threads(y, [&] { run(softmax); });
}

ET_ON_EACH_TARGET(Softmax_);

TEST_P(Softmax_, MatchesDoubleAlongAnyDim) {
  for (bool log : {false, true}) {
    for (int64_t n : {1, 2, 7, 16, 33, 1000, 5000}) {
      expect_softmax(3, n, 1, log);
      expect_softmax(2, n, 5, log);
    }
    expect_softmax(1, 40, 600, log);
    expect_softmax(2, 9, 20, log);
    expect_softmax(1, 4000, 70, log);
    expect_softmax(1, 5000, 70, log);
    expect_softmax(4000, 10, 1, log);
  }
}

TEST_P(Softmax_, ComputesHalfTypesInFloat) {
  const std::vector<float> x = normal_floats(6 * 50);
  for (int64_t inner : {1, 50}) {
    std::vector<BF16> half(x.size()), out(x.size());
    std::vector<float> exact(x.size()), want(x.size()), got(x.size());
    const int64_t n = 300 / 6 / inner * 6 / 6, outer = 300 / (n * inner);
    convert(x.data(), half.data(), 300);
    convert(half.data(), exact.data(), 300);
    run(Softmax{Type::F32, false, outer, n, inner, exact.data(), want.data()});
    run(Softmax{Type::BF16, false, outer, n, inner, half.data(), out.data()});
    convert(out.data(), got.data(), 300);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], want[i], 0x1p-8 * want[i]);
  }
}

TEST_P(Softmax_, LinesWithNaNOrOnlyMinusInfinityAreNaN) {
  for (int64_t inner : {1, 2}) {
    std::vector<float> x = normal_floats(40), y(40);
    for (int64_t i = 0; i < 20; ++i) {
      x[static_cast<size_t>(inner == 1 ? i : 2 * i)] = i == 3 ? NAN : 1.0f;
    }
    run(Softmax{Type::F32, false, inner == 1 ? 2 : 1, 20, inner, x.data(), y.data()});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_FALSE(std::isnan(y[inner == 1 ? 20 : 1]));
    std::fill(x.begin(), x.end(), -INFINITY);
    run(Softmax{Type::F32, false, inner == 1 ? 2 : 1, 20, inner, x.data(), y.data()});
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST_P(Softmax_, IsRefusedMemory) {
  std::vector<float> x(4000);
  expect_refusal(Softmax{Type::F32, false, 1, 40, 100, x.data(), x.data()});
  expect_refusal(Softmax{Type::BF16, false, 40, 100, 1, x.data(), x.data()});
}

TEST_P(Softmax_, TakesEmptySizesAndRefusesThoseThatNobodyCounts) {
  HeapScratch scratch(0);
  for (const int64_t many : {int64_t{5}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_TRUE((Softmax{Type::F32, false, 0, many, many}.run(scratch)));
    EXPECT_TRUE((Softmax{Type::F32, true, many, 0, many}.run(scratch)));
    EXPECT_TRUE((Softmax{Type::F16, false, many, many, 0}.run(scratch)));
  }
  EXPECT_FALSE((Softmax{Type::F32, false, int64_t{1} << 40, 1 << 20, 8}.run(scratch)));
}

}  // namespace
}  // namespace executorch::cpu
