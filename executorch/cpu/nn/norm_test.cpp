#include <executorch/cpu/nn/norm.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

/// Rows with a mean far from zero, which a sum of squares would cancel against.
void expect_normalized(int64_t rows, int64_t n, int64_t inner, int64_t period, bool rms) {
  SCOPED_TRACE(testing::Message() << rows << " x " << n << " inner " << inner << " rms " << rms);
  std::vector<float> x = normal_floats(static_cast<size_t>(rows * n));
  for (float& v : x) v += rms ? 0.5f : 100.0f;
  const std::vector<float> w = normal_floats(static_cast<size_t>(period * n / inner), 2);
  const std::vector<float> b = normal_floats(w.size(), 3);
  std::vector<float> y(x.size()), mean(static_cast<size_t>(rows)), rstd(mean.size());
  NormalizeRows a;
  a.rms = rms;
  a.rows = rows, a.n = n, a.inner = inner, a.weight_period = period;
  a.eps = 1e-5;
  a.x = x.data(), a.y = y.data();
  a.weight = w.data(), a.bias = b.data();
  a.mean = mean.data(), a.rstd = rstd.data();
  a.run();
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + r * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += row[i];
    const double m = rms ? 0 : sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (row[i] - m) * (row[i] - m);
    const double s = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    ASSERT_NEAR(mean[static_cast<size_t>(r)], m, 0x1p-23 * std::fabs(m));
    ASSERT_NEAR(rstd[static_cast<size_t>(r)], s, 0x1p-20 * s);
    for (int64_t i = 0; i < n; ++i) {
      const size_t c = static_cast<size_t>(r % period * (n / inner) + i / inner);
      const double want = (row[i] - m) * s * w[c] + b[c];
      // x is known to 2^-24 of the mean; that is magnified by rstd.
      ASSERT_NEAR(y[static_cast<size_t>(r * n + i)], want,
                  0x1p-20 * (1 + std::fabs(want) + std::fabs(w[c]) * s * (std::fabs(m) / 4 + 1)));
    }
  }
  expect_same_on_any_threads(y, [&] { a.run(); });
}

ET_ON_EACH_TARGET(Norm_);

TEST_P(Norm_, RowsMatchDouble) {
  for (bool rms : {false, true}) {
    for (int64_t n : {2, 17, 64, 768, 5000}) expect_normalized(5, n, 1, 1, rms);
  }
  expect_normalized(200, 768, 1, 1, false);
}

TEST_P(Norm_, ThreadsShareFewLongRows) {
  for (bool rms : {false, true}) expect_normalized(2, 65536 + 77, 1, 1, rms);
  expect_normalized(3, 5 * 13500, 13500, 3, false);
  expect_normalized(1, 200 * 400, 400, 1, false);
}

TEST_P(Norm_, GroupsScaleByChannel) {
  expect_normalized(8, 12, 3, 4, false);
  expect_normalized(6, 4 * 49, 49, 2, false);
  expect_normalized(2, 3 * 5000, 5000, 2, false);
}

TEST_P(Norm_, ChannelsAreScaledInBothLayouts) {
  const int64_t outer = 3, channels = 37;
  for (int64_t inner : {1, 50}) {
    const std::vector<float> x = normal_floats(static_cast<size_t>(outer * channels * inner));
    const std::vector<float> scale = normal_floats(37, 2), shift = normal_floats(37, 3);
    std::vector<float> y(x.size());
    const ScaleChannels a{Type::F32, outer,    channels,     inner,
                          x.data(),  y.data(), scale.data(), shift.data()};
    a.run();
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t c = i / static_cast<size_t>(inner) % 37;
      const double want = double{x[i]} * scale[c] + shift[c];
      ASSERT_NEAR(y[i], want, 0x1p-22 * (1 + std::fabs(want)));
    }
    expect_same_on_any_threads(y, [&] { a.run(); });
  }
}

TEST_P(Norm_, TakesEmptySizes) {
  NormalizeRows rows;
  rows.rows = 5, rows.inner = 0;
  rows.run();
  rows.rows = 0, rows.n = 5;
  rows.run();
  ScaleChannels{Type::F32, 0, 3, 4}.run();
  ScaleChannels{Type::F32, 3, 0, 4}.run();
  ScaleChannels{Type::F32, 3, 4, 0}.run();
}

}  // namespace
}  // namespace executorch::cpu
