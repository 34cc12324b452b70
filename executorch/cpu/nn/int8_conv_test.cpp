#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_testing.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace executorch::cpu {
namespace {

struct Sizes {
  const char* name;
  int64_t batch, height, width, kernel[2], stride, padding, dilation, groups, in, out;
  bool transposed = false, depthwise = false;
  int64_t adjustment = 0;
};

/// A convolution with random operands, and what it has to give.
struct Example {
  Int8Conv conv;
  std::vector<int8_t> x, w;
  std::vector<float> scales;
  std::vector<int32_t> bias, sums;
  std::vector<RowQuantization> images;
  std::vector<uint8_t> y;
  std::vector<float> floats;
  Int8Filter filter;

  explicit Example(const Sizes& s, bool unsigned_bytes = false, bool dynamic = false) {
    std::mt19937 random(7);
    conv.batch = s.batch;
    conv.groups = s.groups;
    conv.group_in = s.in;
    conv.group_out = s.out;
    conv.transposed = s.transposed;
    conv.depthwise = s.depthwise;
    for (int d = 0; d < 2; ++d) {
      ConvAxis& a = conv.axis[d];
      a.in = d == 0 ? s.height : s.width;
      a.kernel = s.kernel[d];
      a.stride = s.stride;
      a.padding = s.padding;
      a.dilation = s.dilation;
      const int64_t window = s.dilation * (a.kernel - 1) + 1;
      a.out = s.transposed ? (a.in - 1) * s.stride + s.adjustment + window - 2 * s.padding
                           : (a.in + 2 * s.padding - window) / s.stride + 1;
    }
    const int64_t channels = s.groups * s.out, taps = s.kernel[0] * s.kernel[1];
    // Exact sizes: reading behind them is an error that sanitizers find.
    for (int64_t i = 0; i < s.batch * s.height * s.width * s.groups * s.in; ++i) {
      x.push_back(static_cast<int8_t>(random()));
    }
    x.shrink_to_fit();
    for (int64_t i = 0; i < channels * taps * s.in; ++i) w.push_back(static_cast<int8_t>(random()));
    for (int64_t c = 0; c < channels; ++c) {
      scales.push_back(0.001f * static_cast<float>(1 + random() % 9));
      bias.push_back(static_cast<int32_t>(random() % 20000) - 10000);
      int32_t sum = 0;
      for (int64_t t = 0; t < taps * s.in; ++t) sum += weight(c, t);
      sums.push_back(sum);
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      images.push_back({0.02f * static_cast<float>(b + 1), static_cast<int32_t>(60 * b - 17)});
      if (unsigned_bytes) images.back().zero_point += 128;
    }
    Int8Gemm& g = conv.product;
    g.n = s.out;
    g.k = taps * s.in;
    g.a = x.data();
    g.unsigned_a = unsigned_bytes;
    g.rows = images.data();
    g.rows_share = dynamic ? 1 : s.batch;
    g.b.data = reinterpret_cast<const uint8_t*>(w.data());
    g.b.row_bytes = g.k;
    g.b.scales = scales.data();
    g.sums = sums.data();
    g.integer_bias = bias.data();
    g.low = -3;
    g.high = 4;
    g.out = dynamic          ? Int8Gemm::Out::F32
            : unsigned_bytes ? Int8Gemm::Out::UInt8
                             : Int8Gemm::Out::Int8;
    if (dynamic) {
      g.integer_bias = nullptr;
      std::fill(bias.begin(), bias.end(), 0);
    }
    g.c_quantization = {0.05f, unsigned_bytes ? 100 : -9};
    g.ldc = channels;
    const auto size = static_cast<size_t>(s.batch * conv.axis[0].out * conv.axis[1].out * channels);
    y.resize(dynamic ? 0 : size);
    floats.resize(dynamic ? size : 0);
    g.c = dynamic ? static_cast<void*>(floats.data()) : y.data();
  }

  /// Of channel c of all, element t of its taps and inputs.
  int32_t weight(int64_t c, int64_t t) const {
    const int64_t k = conv.axis[0].kernel * conv.axis[1].kernel * conv.group_in;
    return w[static_cast<size_t>(conv.depthwise ? t * conv.groups + c : c * k + t)];
  }
  int32_t element(int64_t b, int64_t iy, int64_t ix, int64_t channel) const {
    const int64_t at =
        ((b * conv.axis[0].in + iy) * conv.axis[1].in + ix) * conv.groups * conv.group_in + channel;
    const int8_t q = x[static_cast<size_t>(at)];
    return conv.product.unsigned_a ? static_cast<uint8_t>(q) : q;
  }
  int32_t sum(int64_t b, int64_t oy, int64_t ox, int64_t c) const {
    const RowQuantization& q = images[static_cast<size_t>(b / conv.product.rows_share)];
    int32_t sum = bias[static_cast<size_t>(c)];
    int64_t t = 0;
    for (int64_t ky = 0; ky < conv.axis[0].kernel; ++ky) {
      for (int64_t kx = 0; kx < conv.axis[1].kernel; ++kx) {
        const int64_t iy = conv.axis[0].position(oy, ky, conv.transposed);
        const int64_t ix = conv.axis[1].position(ox, kx, conv.transposed);
        for (int64_t i = 0; i < conv.group_in; ++i, ++t) {
          if (iy < 0 || ix < 0) continue;
          sum += (element(b, iy, ix, c / conv.group_out * conv.group_in + i) - q.zero_point) *
                 weight(c, t);
        }
      }
    }
    return sum;
  }
  void run() {
    conv.pack(filter);
    conv.run(filter);
  }
  void check() {
    run();
    const int64_t channels = conv.groups * conv.group_out;
    size_t i = 0;
    for (int64_t b = 0; b < conv.batch; ++b) {
      const float scale = images[static_cast<size_t>(b / conv.product.rows_share)].scale;
      for (int64_t oy = 0; oy < conv.axis[0].out; ++oy) {
        for (int64_t ox = 0; ox < conv.axis[1].out; ++ox) {
          for (int64_t c = 0; c < channels; ++c, ++i) {
            // The one rounding to nearest even that there is, of one float
            // product.
            const RowQuantization& q = conv.product.c_quantization;
            float v = static_cast<float>(sum(b, oy, ox, c));
            if (!floats.empty()) {
              v *= scale * scales[static_cast<size_t>(c)];
              ASSERT_EQ(floats[i], std::clamp(v, conv.product.low, conv.product.high));
              continue;
            }
            v *= scale * scales[static_cast<size_t>(c)] / q.scale;
            v = std::min(std::max(v, conv.product.low / q.scale), conv.product.high / q.scale);
            const bool bytes = conv.product.unsigned_a;
            v = std::nearbyint(v) + static_cast<float>(q.zero_point);
            v = std::min(std::max(v, bytes ? 0.0f : -128.0f), bytes ? 255.0f : 127.0f);
            const int found = bytes ? y[i] : static_cast<int8_t>(y[i]);
            ASSERT_EQ(found, static_cast<int>(v)) << b << ", " << oy << ", " << ox << ", " << c;
          }
        }
      }
    }
  }
};

const Sizes kSizes[] = {
    {"pointwise", 2, 5, 7, {1, 1}, 1, 0, 1, 1, 8, 35},
    {"pointwise, odd channels", 2, 4, 3, {1, 1}, 1, 0, 1, 1, 7, 5},
    {"pointwise, strided", 1, 7, 9, {1, 1}, 2, 0, 1, 1, 16, 33},
    {"pointwise, padded", 1, 3, 3, {1, 1}, 1, 1, 1, 1, 4, 3},
    {"three channels", 2, 11, 10, {3, 3}, 2, 1, 1, 1, 3, 32},
    {"wide window", 1, 17, 15, {7, 7}, 2, 3, 1, 1, 3, 9},
    {"without padding", 2, 9, 8, {3, 2}, 1, 0, 1, 1, 4, 6},
    {"usual", 1, 14, 14, {3, 3}, 1, 1, 1, 1, 12, 40},
    {"dilated", 1, 12, 13, {3, 3}, 1, 2, 2, 1, 5, 4},
    {"groups", 2, 6, 5, {3, 3}, 1, 1, 1, 3, 4, 5},
    {"groups, odd channels", 1, 6, 5, {2, 3}, 2, 1, 1, 2, 3, 2},
    {"groups, pointwise", 1, 4, 5, {1, 1}, 1, 0, 1, 2, 8, 3},
    {"one pixel", 1, 1, 1, {1, 1}, 1, 0, 1, 1, 64, 10},
    {"padding alone", 1, 1, 1, {3, 3}, 1, 2, 1, 1, 2, 3},
    {"transposed", 2, 4, 5, {3, 3}, 2, 1, 1, 1, 3, 4, true, false, 1},
    {"transposed, groups", 1, 3, 3, {2, 2}, 2, 0, 1, 2, 4, 3, true},
    {"transposed, cropped", 1, 4, 4, {2, 3}, 1, 2, 1, 1, 4, 2, true},
    {"depthwise", 2, 6, 5, {3, 3}, 1, 1, 1, 70, 1, 1, false, true},
    {"depthwise, half a vector", 2, 7, 9, {3, 3}, 1, 1, 1, 32, 1, 1, false, true},
    {"depthwise, one piece, strided", 1, 9, 11, {3, 3}, 2, 1, 1, 16, 1, 1, false, true},
    {"depthwise, nine pieces", 2, 5, 23, {3, 3}, 1, 1, 1, 144, 1, 1, false, true},
    {"depthwise, nine pieces, strided", 1, 8, 75, {3, 3}, 2, 1, 1, 144, 1, 1, false, true},
    {"depthwise, nine pieces, dilated", 1, 9, 12, {3, 3}, 2, 2, 2, 144, 1, 1, false, true},
    {"depthwise, steps over columns", 1, 9, 13, {2, 2}, 3, 0, 1, 48, 1, 1, false, true},
    {"depthwise, four lines at once", 1, 9, 9, {5, 5}, 1, 2, 1, 96, 1, 1, false, true},
    {"depthwise, blocks", 1, 5, 6, {3, 3}, 1, 1, 1, 200, 1, 1, false, true},
    {"depthwise, wide lines", 1, 3, 700, {3, 3}, 1, 1, 1, 128, 1, 1, false, true},
    {"depthwise, few channels", 1, 6, 37, {3, 3}, 1, 1, 1, 3, 1, 1, false, true},
    {"depthwise, strided", 1, 9, 70, {3, 3}, 2, 1, 1, 64, 1, 1, false, true},
    {"depthwise, wide", 1, 8, 9, {5, 5}, 2, 2, 1, 33, 1, 1, false, true},
    {"depthwise, dilated", 1, 9, 9, {3, 2}, 1, 1, 2, 17, 1, 1, false, true},
    {"depthwise, nine rows", 1, 10, 3, {9, 1}, 1, 0, 1, 5, 1, 1, false, true},
    {"depthwise, padding alone", 1, 1, 1, {3, 3}, 1, 3, 1, 5, 1, 1, false, true},
};

class Int8Conv_ : public OnEachInt8Set {};
INSTANTIATE_TEST_SUITE_P(Sets, Int8Conv_, testing::Range(0, count_int8_sets()));

TEST_P(Int8Conv_, IsExactForAnySize) {
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(sizes.name);
    Example(sizes).check();
  }
}

TEST_P(Int8Conv_, TakesUnsignedImages) {
  for (const Sizes& sizes : kSizes) {
    SCOPED_TRACE(sizes.name);
    Example(sizes, true).check();
  }
}

TEST_P(Int8Conv_, PadsEachImageByItsZeroPoint) {
  for (const Sizes& sizes : kSizes) {
    if (sizes.batch == 1 || sizes.depthwise) continue;
    SCOPED_TRACE(sizes.name);
    Example(sizes, false, true).check();
  }
}

TEST_P(Int8Conv_, DoesNotDependOnTheNumberOfThreads) {
  const Sizes sizes[] = {{"", 2, 30, 29, {3, 3}, 1, 1, 1, 1, 32, 48},
                         {"", 2, 30, 29, {1, 1}, 1, 0, 1, 1, 32, 48},
                         {"", 2, 30, 29, {3, 3}, 1, 1, 1, 80, 1, 1, false, true}};
  for (const Sizes& s : sizes) {
    Example alone(s), shared(s);
    {
      const UsePool none(nullptr);
      alone.run();
    }
    ThreadPool pool(3);
    const UsePool three(&pool);
    shared.run();
    EXPECT_EQ(alone.y, shared.y);
  }
}

}  // namespace
}  // namespace executorch::cpu
