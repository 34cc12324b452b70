#include <executorch/cpu/nn/bilinear.h>
#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/nn/testing.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

ET_ON_EACH_TARGET(Bilinear_);

/// The places and weights of `out` positions among `in`, which are spread evenly.
struct Axis {
  std::vector<int32_t> first, second;
  std::vector<float> w0, w1;

  Axis(int64_t in, int64_t out) {
    for (int64_t o = 0; o < out; ++o) {
      const double at = std::clamp(
          (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5,
          0.0, static_cast<double>(in) - 0.75);
      first.push_back(static_cast<int32_t>(at));
      second.push_back(static_cast<int32_t>(std::min<int64_t>(first.back() + 1, in - 1)));
      w1.push_back(static_cast<float>(at - first.back()));
      w0.push_back(1 - w1.back());
    }
  }
};

void expect_resampled(int64_t in_h, int64_t in_w, int64_t out_h, int64_t out_w) {
  SCOPED_TRACE(testing::Message() << in_h << " x " << in_w << " to " << out_h << " x " << out_w);
  constexpr int64_t kPlanes = 3, kApart = 5;  // elements between rows and between planes
  const Axis rows(in_h, out_h), columns(in_w, out_w);
  Bilinear a;
  a.planes = kPlanes;
  a.in_w = in_w;
  a.out_h = out_h;
  a.out_w = out_w;
  a.x_row = in_w + kApart;
  a.x_plane = in_h * a.x_row + kApart;
  a.y_row = out_w + kApart;
  a.y_plane = out_h * a.y_row + kApart;
  const std::vector<float> x = normal_floats(static_cast<size_t>(kPlanes * a.x_plane));
  std::vector<float> y(static_cast<size_t>(kPlanes * a.y_plane));
  a.x = x.data();
  a.y = y.data();
  a.first_row = rows.first.data();
  a.second_row = rows.second.data();
  a.v0 = rows.w0.data();
  a.v1 = rows.w1.data();
  a.first_column = columns.first.data();
  a.w0 = columns.w0.data();
  a.w1 = columns.w1.data();
  run(a);
  for (int64_t p = 0; p < kPlanes; ++p) {
    for (int64_t i = 0; i < a.y_plane; ++i) {
      const float found = y[static_cast<size_t>(p * a.y_plane + i)];
      const auto h = static_cast<size_t>(i / a.y_row), w = static_cast<size_t>(i % a.y_row);
      if (i / a.y_row >= out_h || i % a.y_row >= out_w) {
        ASSERT_EQ(found, 0.0f) << "between rows";
        continue;
      }
      const auto row = [&](int32_t r) {
        const auto at = [&](int32_t c) {
          return static_cast<double>(x[static_cast<size_t>(p * a.x_plane + r * a.x_row + c)]);
        };
        return columns.w0[w] * at(columns.first[w]) + columns.w1[w] * at(columns.second[w]);
      };
      const double want = rows.w0[h] * row(rows.first[h]) + rows.w1[h] * row(rows.second[h]);
      ASSERT_NEAR(found, want, 16 * epsilon<float>() * 4) << p << " " << h << " " << w;
    }
  }
  expect_same_on_any_threads(y, [&] { run(a); });
}

TEST_P(Bilinear_, MatchesDoubleForAnyExtents) {
  expect_resampled(1, 1, 3, 5);
  expect_resampled(7, 9, 14, 18);
  expect_resampled(20, 31, 40, 93);
  expect_resampled(16, 40, 16, 40);
  expect_resampled(64, 80, 13, 33);  // columns that are far apart
  expect_resampled(30, 70, 200, 61);
  expect_resampled(5, 2, 9, 100);
}

TEST_P(Bilinear_, WritesPastCachesAndIsRefusedMemory) {
  const int64_t before = internal::set_cache_bytes(1024);
  expect_resampled(20, 31, 40, 93);
  internal::set_cache_bytes(before);
  const Axis axis(4, 200);
  const std::vector<float> x(16);
  std::vector<float> y(200 * 200);
  Bilinear a;
  a.in_w = a.x_row = 4;
  a.out_h = a.out_w = a.y_row = 200;
  a.x = x.data();
  a.y = y.data();
  a.first_row = a.first_column = axis.first.data();
  a.second_row = axis.second.data();
  a.v0 = a.w0 = axis.w0.data();
  a.v1 = a.w1 = axis.w1.data();
  expect_refusal(a);
}

}  // namespace
}  // namespace executorch::cpu
