#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/kernels_testing.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace executorch::cpu {
namespace {

struct Sizes {
  const char* name;
  int64_t batch, height, width, kernel[2], stride, padding, dilation, groups, in, out;
  bool transposed = false, columns = false;  // the filter is [taps, channels]
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
    set_shape(s);
    make_operands(s, unsigned_bytes);
    set_product(s, unsigned_bytes, dynamic);
  }

  void set_shape(const Sizes& s) {
    conv.batch = s.batch;
    conv.groups = s.groups;
    conv.group_in = s.in;
    conv.group_out = s.out;
    conv.transposed = s.transposed;
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
    conv.product.n = s.out;
    conv.product.k = s.kernel[0] * s.kernel[1] * s.in;
    conv.product.b.row_bytes = s.columns ? 1 : conv.product.k;
    conv.filter_step = s.columns ? s.groups * s.out : 1;
  }

  void make_operands(const Sizes& s, bool unsigned_bytes) {
    std::mt19937 random(7);
    const int64_t channels = s.groups * s.out, k = conv.product.k;
    // Exact sizes: reading behind them is an error that sanitizers find.
    for (int64_t i = 0; i < s.batch * s.height * s.width * s.groups * s.in; ++i) {
      x.push_back(static_cast<int8_t>(random()));
    }
    x.shrink_to_fit();
    for (int64_t i = 0; i < channels * k; ++i) w.push_back(static_cast<int8_t>(random()));
    for (int64_t c = 0; c < channels; ++c) {
      scales.push_back(0.001f * static_cast<float>(1 + random() % 9));
      bias.push_back(static_cast<int32_t>(random() % 20000) - 10000);
      int32_t sum = 0;
      for (int64_t t = 0; t < k; ++t) sum += weight(c, t);
      sums.push_back(sum);
    }
    for (int64_t b = 0; b < s.batch; ++b) {
      images.push_back({0.02f * static_cast<float>(b + 1), static_cast<int32_t>(60 * b - 17)});
      if (unsigned_bytes) images.back().zero_point += 128;
    }
  }

  void set_product(const Sizes& s, bool unsigned_bytes, bool dynamic) {
    Int8Gemm& g = conv.product;
    g.a = x.data();
    g.unsigned_a = unsigned_bytes;
    g.rows = images.data();
    g.rows_share = dynamic ? 1 : s.batch;
    g.b.data = reinterpret_cast<const uint8_t*>(w.data());
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
    g.ldc = s.groups * s.out;
    make_room(dynamic);
  }

  /// For the results, floats or bytes.
  void make_room(bool are_floats) {
    const auto size = static_cast<size_t>(conv.batch * conv.axis[0].out * conv.axis[1].out *
                                          conv.groups * conv.group_out);
    y.resize(are_floats ? 0 : size);
    floats.resize(are_floats ? size : 0);
    conv.product.c = are_floats ? static_cast<void*>(floats.data()) : y.data();
  }

  /// Of channel c of all, element t of its taps and inputs.
  int32_t weight(int64_t c, int64_t t) const {
    return w[static_cast<size_t>(c * conv.product.b.row_bytes + t * conv.filter_step)];
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
    HeapScratch scratch;
    ASSERT_TRUE(conv.pack(filter));
    ASSERT_TRUE(conv.run(filter, scratch));
  }
  void check() {
    run();
    compare();
  }
  /// Of the width alone; `axis.in` as it is.
  void set_width(const ConvAxis& axis) {
    conv.axis[1] = axis;
    make_room(!floats.empty());
  }
  void compare() const {
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
    {"deep", 1, 5, 6, {3, 3}, 1, 1, 1, 1, 180, 20},
    {"dilated", 1, 12, 13, {3, 3}, 1, 2, 2, 1, 5, 4},
    {"groups", 2, 6, 5, {3, 3}, 1, 1, 1, 3, 4, 5},
    {"groups, odd channels", 1, 6, 5, {2, 3}, 2, 1, 1, 2, 3, 2},
    {"groups, pointwise", 1, 4, 5, {1, 1}, 1, 0, 1, 2, 8, 3},
    {"one pixel", 1, 1, 1, {1, 1}, 1, 0, 1, 1, 64, 10},
    {"padding alone", 1, 1, 1, {3, 3}, 1, 2, 1, 1, 2, 3},
    {"transposed", 2, 4, 5, {3, 3}, 2, 1, 1, 1, 3, 4, true, false, 1},
    {"transposed, groups", 1, 3, 3, {2, 2}, 2, 0, 1, 2, 4, 3, true},
    {"transposed, cropped", 1, 4, 4, {2, 3}, 1, 2, 1, 1, 4, 2, true},
    {"transposed, overlapping", 2, 5, 4, {4, 5}, 2, 1, 1, 1, 8, 6, true},
    {"transposed, dilated", 2, 4, 5, {5, 4}, 3, 2, 2, 2, 3, 2, true, false, 1},
    {"transposed, depthwise", 2, 5, 6, {4, 3}, 2, 1, 1, 70, 1, 1, true},
    {"transposed, a phase without outputs", 1, 2, 3, {3, 3}, 3, 2, 1, 5, 1, 1, true},
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
    {"pointwise, many channels", 1, 3, 5, {1, 1}, 1, 0, 1, 1, 1100, 40},
    {"groups, pointwise, several panels", 2, 9, 7, {1, 1}, 1, 0, 1, 2, 8, 35},
    {"without padding, several panels", 2, 9, 8, {3, 2}, 1, 0, 1, 1, 4, 40},
    {"depthwise, few channels", 1, 6, 37, {3, 3}, 1, 1, 1, 3, 1, 1, false, true},
    {"depthwise, strided", 1, 9, 70, {3, 3}, 2, 1, 1, 64, 1, 1, false, true},
    {"depthwise, wide", 1, 8, 9, {5, 5}, 2, 2, 1, 33, 1, 1, false, true},
    {"depthwise, dilated", 1, 9, 9, {3, 2}, 1, 1, 2, 17, 1, 1, false, true},
    {"depthwise, nine rows", 1, 10, 3, {9, 1}, 1, 0, 1, 5, 1, 1, false, true},
    {"depthwise, two of each channel", 2, 6, 5, {3, 3}, 1, 1, 1, 7, 1, 2, false, true},
    {"depthwise, rows of weights", 1, 6, 9, {3, 3}, 1, 1, 1, 70, 1, 1},
    {"depthwise, one output of strides", 1, 9, 5, {3, 3}, 9, 0, 1, 48, 1, 1, false, true},
    {"depthwise, padding alone", 1, 1, 1, {3, 3}, 1, 3, 1, 5, 1, 1, false, true},
};

class Int8Conv_ : public OnEachSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Int8Conv_, testing::Range(0, gemm::count_sets()));

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
    if (sizes.batch == 1) continue;
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

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

// All pairs of extremes of two of the width's numbers, with memory in proportion to operands that
// are small.
void check_pairs(const Sizes& sizes, int64_t out, int64_t ConvAxis::*first,
                 int64_t ConvAxis::*second) {
  for (const bool dynamic : {false, true}) {
    Example example(sizes, false, dynamic);
    ASSERT_TRUE(example.conv.pack(example.filter));
    for (const int64_t a : kExtremes) {
      for (const int64_t b : kExtremes) {
        ConvAxis axis = example.conv.axis[1];
        axis.stride = axis.dilation = 1, axis.padding = 0, axis.out = out;
        axis.*first = a;
        axis.*second = b;
        SCOPED_TRACE(testing::Message() << "stride " << axis.stride << " padding " << axis.padding
                                        << " dilation " << axis.dilation);
        example.set_width(axis);
        HeapScratch scratch(48 << 20);
        // Which depends on strides and dilations.
        const bool made = example.conv.pack(example.filter);
        const bool done = made && example.conv.run(example.filter, scratch);
        if (done) example.compare();
        if (testing::Test::HasFatalFailure()) return;
        EXPECT_TRUE(done || axis.stride < 1 || axis.dilation < 1 || axis.padding < -kTwo31 ||
                    std::max({axis.stride, axis.padding, axis.dilation}) > kTwo31);
      }
    }
  }
}

TEST_P(Int8Conv_, TakesAnyStridePaddingAndDilation) {
  const UsePool alone(nullptr);
  for (const Sizes& sizes : {Sizes{"dense", 2, 3, 5, {2, 3}, 1, 1, 1, 1, 3, 5},
                             {"groups", 1, 3, 4, {2, 1}, 1, 1, 1, 2, 4, 3},
                             {"transposed", 1, 3, 5, {2, 3}, 1, 1, 1, 1, 3, 5, true},
                             {"depthwise", 1, 5, 6, {3, 3}, 1, 1, 1, 16, 1, 1, false, true},
                             {"depthwise, odd", 1, 5, 1, {1, 3}, 1, 1, 1, 3, 1, 1, false, true}}) {
    SCOPED_TRACE(sizes.name);
    for (const int64_t out : {1, 4}) {
      check_pairs(sizes, out, &ConvAxis::stride, &ConvAxis::padding);
      check_pairs(sizes, out, &ConvAxis::stride, &ConvAxis::dilation);
      check_pairs(sizes, out, &ConvAxis::padding, &ConvAxis::dilation);
    }
  }
}

TEST_P(Int8Conv_, RefusesSizesThatAreNotPositive) {
  for (int64_t Int8Conv::*size :
       {&Int8Conv::batch, &Int8Conv::groups, &Int8Conv::group_in, &Int8Conv::group_out}) {
    for (const int64_t n : {int64_t{0}, int64_t{-1}, kLeast}) {
      Example example(kSizes[0]);
      example.conv.*size = n;
      HeapScratch scratch;
      EXPECT_FALSE(example.conv.pack(example.filter));
      EXPECT_FALSE(example.conv.run(example.filter, scratch));
    }
  }
}

// Every output meets the one pixel with another tap.
TEST_P(Int8Conv_, VisitsOnlyWhatIsThere) {
  Sizes sizes = {"", 1, 1, 1, {61, 71}, 1, 0, 1, 1, 1, 1, true};
  Example(sizes).check();
  Example(sizes, false, true).check();
}

TEST_P(Int8Conv_, ReadsFiltersThatPackingWouldMultiply) {
  const Sizes sizes = {"", 1, 2, 2, {1, 1}, 1, 0, 1, 1 << 17, 2, 1};
  Example example(sizes);
  example.check();
  EXPECT_EQ(example.filter.data(), nullptr);
}

TEST_P(Int8Conv_, SaysThatMemoryWasRefused) {
  for (const Sizes& sizes : {kSizes[2], kSizes[4], kSizes[9], kSizes[14], kSizes[17]}) {
    SCOPED_TRACE(sizes.name);
    for (const size_t threads : {1, 3, 17}) {
      ThreadPool pool(threads);
      const UsePool use(&pool);
      Example example(sizes);
      ASSERT_TRUE(example.conv.pack(example.filter));
      bool refused = false, done = false;
      for (size_t limit = 0; !done; limit = limit * 5 / 4 + 64) {
        HeapScratch scratch(limit);
        done = example.conv.run(example.filter, scratch);
        if (done) example.compare();
        refused |= !done;
        ASSERT_LT(limit, size_t{1} << 24);
      }
      EXPECT_TRUE(refused);
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
