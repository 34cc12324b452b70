#include <executorch/cpu/nn/reduce.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

using Op = Reduce::Op;

void expect_reduced(Op op, int64_t outer, int64_t n, int64_t inner) {
  SCOPED_TRACE(testing::Message() << outer << " x " << n << " x " << inner);
  const std::vector<float> x = normal_floats(static_cast<size_t>(outer * n * inner));
  std::vector<float> y(static_cast<size_t>(outer * inner));
  const Reduce a{Type::F32, op,      op == Op::Sum ? 3.0 : 1.0, outer, n, inner, n * inner, inner,
                 x.data(),  y.data()};
  run(a);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < inner; ++c) {
      double want = op == Op::Sum ? 0 : x[static_cast<size_t>(o * n * inner + c)], terms = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double v = x[static_cast<size_t>((o * n + i) * inner + c)];
        want = op == Op::Sum ? want + v : op == Op::Max ? std::fmax(want, v) : std::fmin(want, v);
        terms += std::fabs(v);
      }
      // Lanes of float add at most 2048 / 4 numbers before double takes over.
      const double error = op == Op::Sum ? 0x1p-24 * terms / 3 * 32 : 0;
      ASSERT_NEAR(y[static_cast<size_t>(o * inner + c)], want / a.divisor, error);
    }
  }
  expect_same_on_any_threads(y, [&] { run(a); });
}

ET_ON_EACH_TARGET(Reduce_);

TEST_P(Reduce_, MatchesDoubleOverAnyDim) {
  for (Op op : {Op::Sum, Op::Max, Op::Min}) {
    for (int64_t n : {1, 3, 16, 65, 1000, 5001}) {
      expect_reduced(op, 3, n, 1);
      expect_reduced(op, 2, n, 19);
    }
    expect_reduced(op, 1, 300000, 1);
    expect_reduced(op, 1, 700, 1500);
    expect_reduced(op, 900, 40, 1);
    for (int64_t n : {1, 2, 3, 7, 16, 20, 63, 64}) expect_reduced(op, 37, n, 1);
  }
}

TEST_P(Reduce_, MultipliesOverAnyDim) {
  for (const int64_t n : {1, 2, 3, 17, 65, 200}) {
    for (const int64_t inner : {1, 2, 19}) {
      SCOPED_TRACE(testing::Message() << n << " x " << inner);
      constexpr int64_t kOuter = 40;
      std::vector<float> x = normal_floats(static_cast<size_t>(kOuter * n * inner));
      for (float& v : x) v = std::copysign(0.8f + std::fabs(v) / 4, v);  // of magnitude 1
      std::vector<float> y(static_cast<size_t>(kOuter * inner));
      run(Reduce{Type::F32, Op::Product, 1, kOuter, n, inner, n * inner, inner, x.data(),
                 y.data()});
      for (int64_t i = 0; i < kOuter * inner; ++i) {
        double want = 1;
        for (int64_t k = 0; k < n; ++k) {
          want *= x[static_cast<size_t>((i / inner * n + k) * inner + i % inner)];
        }
        ASSERT_NEAR(y[static_cast<size_t>(i)], want, std::fabs(want) * 0x1p-24 * (n + 1)) << i;
      }
    }
  }
}

TEST_P(Reduce_, ANaNOfAShortRowStaysInItsRow) {
  constexpr size_t kRows = 40, kLength = 11;
  for (Op op : {Op::Max, Op::Min}) {
    for (size_t at = 0; at < kLength; ++at) {
      std::vector<float> x = normal_floats(kRows * kLength), y(kRows);
      x[17 * kLength + at] = NAN;
      run(Reduce{Type::F32, op, 1, kRows, kLength, 1, kLength, 1, x.data(), y.data()});
      for (size_t row = 0; row < kRows; ++row) EXPECT_EQ(std::isnan(y[row]), row == 17) << row;
    }
  }
}

TEST_P(Reduce_, ExtremesAreNaNIfAnElementIs) {
  for (Op op : {Op::Max, Op::Min}) {
    for (int64_t inner : {1, 4}) {
      for (int64_t at : {0, 5, 99}) {
        std::vector<float> x = normal_floats(static_cast<size_t>(100 * inner));
        std::vector<float> y(static_cast<size_t>(inner));
        x[static_cast<size_t>(at * inner)] = NAN;
        run(Reduce{Type::F32, op, 1, 1, 100, inner, 0, inner, x.data(), y.data()});
        EXPECT_TRUE(std::isnan(y[0])) << at;
        if (inner > 1) {
          EXPECT_FALSE(std::isnan(y[1])) << at;
        }
      }
    }
  }
}

/// The row of the first extreme of column c: NaN counts as the extreme.
int64_t first_extreme(Op op, const std::vector<float>& x, int64_t n, int64_t inner, int64_t c) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    const float v = x[static_cast<size_t>(i * inner + c)];
    const float old = x[static_cast<size_t>(best * inner + c)];
    if (std::isnan(old)) break;
    if (std::isnan(v) || (op == Op::Max ? v > old : v < old)) best = i;
  }
  return best;
}

TEST_P(Reduce_, FindsTheFirstExtremesOfColumns) {
  for (Op op : {Op::Max, Op::Min}) {
    for (const int64_t n : {1, 3, 70}) {
      for (const int64_t inner : {2, 19, 1100}) {
        SCOPED_TRACE(testing::Message() << n << " x " << inner);
        std::vector<float> x = normal_floats(static_cast<size_t>(n * inner));
        for (float& v : x) v = std::round(v * 2);  // with equal elements
        x[static_cast<size_t>(n / 2 * inner)] = NAN;
        x[static_cast<size_t>((n - 1) * inner)] = NAN;
        x[1] = op == Op::Max ? -INFINITY : INFINITY;
        std::vector<float> y(static_cast<size_t>(inner));
        std::vector<int64_t> at(static_cast<size_t>(inner)), alone(at);
        Reduce a{Type::F32, op, 1, 1, n, inner, 0, inner, x.data(), y.data(), at.data()};
        run(a);
        for (int64_t c = 0; c < inner; ++c) {
          const int64_t want = first_extreme(op, x, n, inner, c);
          ASSERT_EQ(at[static_cast<size_t>(c)], want) << c;
          const float value = x[static_cast<size_t>(want * inner + c)];
          ASSERT_EQ(std::isnan(y[static_cast<size_t>(c)]), std::isnan(value)) << c;
          if (c > 0) {
            ASSERT_EQ(y[static_cast<size_t>(c)], value) << c;
          }
        }
        a.y = nullptr;
        a.indices = alone.data();
        run(a);
        EXPECT_EQ(alone, at);
      }
    }
  }
}

TEST_P(Reduce_, IsRefusedMemoryBeforeAnythingIsWritten) {
  const std::vector<float> x(300000);
  float y = 7;
  HeapScratch none(0);
  EXPECT_FALSE((Reduce{Type::F32, Op::Sum, 1, 1, 300000, 1, 0, 1, x.data(), &y}.run(none)));
  EXPECT_EQ(y, 7);
}

TEST_P(Reduce_, TakesEmptySizesAndRefusesThoseThatNobodyCounts) {
  HeapScratch scratch;
  for (const int64_t inner : {1, 20}) {
    for (const Op op : {Op::Sum, Op::Max, Op::Min}) {
      std::vector<float> y(static_cast<size_t>(3 * inner), 7);
      run(Reduce{Type::F32, op, 1, 3, 0, inner, 0, inner, nullptr, y.data()});
      const float nothing = op == Op::Sum ? 0 : op == Op::Max ? -INFINITY : INFINITY;
      EXPECT_EQ(y, std::vector<float>(y.size(), nothing));
    }
    EXPECT_TRUE((Reduce{Type::F32, Op::Sum, 1, 0, 5, inner, 0, inner}.run(scratch)));
    EXPECT_FALSE((Reduce{Type::F32, Op::Sum, 1, int64_t{1} << 62, 5, inner}.run(scratch)));
  }
}

}  // namespace
}  // namespace executorch::cpu
