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
  a.run();
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
  expect_same_on_any_threads(y, [&] { a.run(); });
}

TEST(Reduce, MatchesDoubleOverAnyDim) {
  for (Op op : {Op::Sum, Op::Max, Op::Min}) {
    for (int64_t n : {1, 3, 16, 65, 1000, 5001}) {
      expect_reduced(op, 3, n, 1);
      expect_reduced(op, 2, n, 19);
    }
    expect_reduced(op, 1, 300000, 1);
    expect_reduced(op, 1, 700, 1500);
    expect_reduced(op, 900, 40, 1);
  }
}

TEST(Reduce, ExtremesAreNaNIfAnElementIs) {
  for (Op op : {Op::Max, Op::Min}) {
    for (int64_t inner : {1, 4}) {
      for (int64_t at : {0, 5, 99}) {
        std::vector<float> x = normal_floats(static_cast<size_t>(100 * inner));
        std::vector<float> y(static_cast<size_t>(inner));
        x[static_cast<size_t>(at * inner)] = NAN;
        Reduce{Type::F32, op, 1, 1, 100, inner, 0, inner, x.data(), y.data()}.run();
        EXPECT_TRUE(std::isnan(y[0])) << at;
        if (inner > 1) {
          EXPECT_FALSE(std::isnan(y[1])) << at;
        }
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
