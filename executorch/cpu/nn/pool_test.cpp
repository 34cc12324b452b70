#include <executorch/cpu/nn/pool.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

struct Windows {
  std::vector<int32_t> begin, count;
  std::vector<float> divisor;
  PoolAxis axis;

  Windows(int64_t in, int64_t size, int64_t stride, int64_t padding, int64_t dilation) {
    const int64_t out = (in + 2 * padding - dilation * (size - 1) - 1) / stride + 1;
    for (int64_t o = 0; o < out; ++o) {
      int64_t first = -1, n = 0;
      for (int64_t t = 0; t < size; ++t) {
        const int64_t at = o * stride - padding + t * dilation;
        if (at < 0 || at >= in) continue;
        if (n++ == 0) first = at;
      }
      begin.push_back(static_cast<int32_t>(first));
      count.push_back(static_cast<int32_t>(n));
      divisor.push_back(static_cast<float>(n));
    }
    int64_t first = 0, end = out;
    while (first < end && count[static_cast<size_t>(first)] < size) ++first;
    while (end > first && count[static_cast<size_t>(end - 1)] < size) --end;
    axis = {in, out, dilation, stride, first, end, begin.data(), count.data(), divisor.data()};
  }
};

void expect_pooled(bool max, bool last, std::vector<float> x, int64_t channels, const Windows& h,
                   const Windows& w) {
  const PoolAxis &a = h.axis, &b = w.axis;
  const int64_t batch = static_cast<int64_t>(x.size()) / (channels * a.in * b.in);
  const auto at = [&](int64_t n, int64_t c, int64_t i, int64_t j, int64_t height, int64_t width) {
    return static_cast<size_t>(last ? ((n * height + i) * width + j) * channels + c
                                    : ((n * channels + c) * height + i) * width + j);
  };
  std::vector<float> y(static_cast<size_t>(batch * channels * a.out * b.out));
  std::vector<int64_t> index(y.size());
  const Pool2d pool{Type::F32, max, last, batch, channels, a, b, x.data(), y.data(), index.data()};
  run(pool);
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < a.out; ++i) {
        for (int64_t j = 0; j < b.out; ++j) {
          double best = -INFINITY, sum = 0, terms = 0;
          int64_t best_at = -1;
          for (int64_t s = 0; s < h.count[static_cast<size_t>(i)]; ++s) {
            for (int64_t t = 0; t < w.count[static_cast<size_t>(j)]; ++t) {
              const int64_t p = h.begin[static_cast<size_t>(i)] + s * a.dilation;
              const int64_t q = w.begin[static_cast<size_t>(j)] + t * b.dilation;
              const double v = x[at(n, c, p, q, a.in, b.in)];
              sum += v;
              terms += std::fabs(v);
              if (v > best || std::isnan(v) || best_at < 0) {
                best = v;
                best_at = p * b.in + q;
              }
            }
          }
          const size_t o = at(n, c, i, j, a.out, b.out);
          const double n_terms = static_cast<double>(h.count[static_cast<size_t>(i)]) *
                                 w.count[static_cast<size_t>(j)];
          if (max) {
            ASSERT_EQ(index[o], best_at) << i << "," << j;
            ASSERT_TRUE(y[o] == best || (std::isnan(y[o]) && std::isnan(best)));
          } else {
            ASSERT_NEAR(y[o], sum / n_terms, 0x1p-22 * terms);
          }
        }
      }
    }
  }
  expect_same_on_any_threads(y, [&] { run(pool); });
}

ET_ON_EACH_TARGET(Pool_);

TEST_P(Pool_, MatchesALoopInBothLayouts) {
  for (bool max : {true, false}) {
    for (bool last : {true, false}) {
      for (int64_t stride : {1, 2, 3, 4, 5}) {
        for (int64_t size : {1, 2, 3, 5}) {
          SCOPED_TRACE(testing::Message() << "last " << last << " size " << size);
          const Windows h(19, size, stride, size / 2, 1), w(71, size, stride, size / 2, 1);
          expect_pooled(max, last, normal_floats(2 * 5 * 19 * 71), 5, h, w);
        }
      }
    }
  }
}

TEST_P(Pool_, MaxTakesTheFirstOfEqualsAndTheLastNaN) {
  for (bool last : {true, false}) {
    std::vector<float> x = normal_floats(18 * 20 * 70);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = i % 97 == 0 ? NAN : std::round(x[i]);  // few values: many are equal
    }
    for (int64_t dilation : {1, 2}) {
      const Windows h(20, 3, 2, 1, dilation), w(70, 3, 2, 1, dilation);
      expect_pooled(true, last, x, 18, h, w);
    }
  }
}

TEST_P(Pool_, WholeImagesAreAveraged) {
  const Windows h(33, 33, 1, 0, 1), w(40, 40, 1, 0, 1);
  for (bool last : {true, false}) {
    expect_pooled(false, last, normal_floats(600 * 33 * 40), 600, h, w);
  }
}

TEST_P(Pool_, IsRefusedMemoryBeforeAnythingIsWritten) {
  const Windows h(9, 3, 1, 1, 1), w(9, 3, 1, 1, 1);
  const std::vector<float> x(81);
  std::vector<float> y(81, 7);
  Pool2d pool{Type::F32, true, false, 1, 1, h.axis, w.axis, x.data(), y.data()};
  expect_refusal(pool);
  pool.channels = int64_t{1} << 60;
  expect_refusal(pool);
  EXPECT_EQ(y, std::vector<float>(81, 7));
}

TEST_P(Pool_, TakesEmptySizesButNoWindowsOverNothing) {
  const Windows h(9, 3, 1, 1, 1), w(9, 3, 1, 1, 1);
  HeapScratch scratch;
  for (const bool last : {false, true}) {
    Pool2d pool{Type::F32, true, last, 0, 1, h.axis, w.axis};
    EXPECT_TRUE(pool.run(scratch));
    pool.batch = 1, pool.channels = 0;
    EXPECT_TRUE(pool.run(scratch));
    pool.channels = 1, pool.h.out = 0;
    EXPECT_TRUE(pool.run(scratch));
    pool.h.out = 3, pool.h.in = 0;
    EXPECT_FALSE(pool.run(scratch));
  }
}

TEST_P(Pool_, TakesAnyDilationOfWindowsThatReachTheImageOnce) {
  Windows h(9, 1, 1, 0, 1), w(40, 1, 1, 0, 1);
  h.axis.dilation = w.axis.dilation = std::numeric_limits<int64_t>::max();
  for (const bool last : {false, true}) expect_pooled(true, last, normal_floats(720), 2, h, w);
}

}  // namespace
}  // namespace executorch::cpu
