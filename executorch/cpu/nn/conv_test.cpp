#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

// Convolutions against the definition in double. The bound is that of any order of summation,
// (terms + 4) eps sum |x w|, and one rounding to the stored type.
namespace executorch::cpu {
namespace {

enum class Layout { ChannelsFirst, ChannelsLast, WidthOutermost };

struct Case {
  int64_t batch = 1, groups = 1, group_in = 3, group_out = 5;
  ConvAxis axis[3] = {};
  bool transposed = false;
  Layout in = Layout::ChannelsFirst, weight = Layout::ChannelsFirst, out = Layout::ChannelsFirst;
  bool bias = true, residual = false;
  Activation act = {};
};

ConvAxis axis(int64_t in, int64_t kernel, int64_t stride = 1, int64_t padding = 0,
              int64_t dilation = 1) {
  ConvAxis a;
  a.in = in, a.kernel = kernel, a.stride = stride, a.padding = padding, a.dilation = dilation;
  return a;
}

// Strides of [channels, x0, x1, x2]; returns the channel's.
int64_t lay_out(Layout layout, int64_t channels, ConvAxis (&axis)[3], int64_t ConvAxis::*extent,
                int64_t ConvAxis::*stride) {
  int64_t next = layout == Layout::ChannelsLast ? channels : 1;
  const int forward[] = {2, 1, 0}, backward[] = {1, 0, 2};
  for (const int d : layout == Layout::WidthOutermost ? backward : forward) {
    axis[d].*stride = next;
    next *= axis[d].*extent;
  }
  return layout == Layout::ChannelsLast ? 1 : next;
}

template <class T>
T stored(float x) {
  if constexpr (std::is_same_v<T, BF16>) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(x));
    return {static_cast<uint16_t>(bits >> 16)};
  } else if constexpr (std::is_same_v<T, F16>) {
    if (x == 0) return {0};
    int e;
    const double m = std::frexp(std::fabs(x), &e);
    const auto bits = static_cast<uint16_t>((e + 14) << 10 | (static_cast<int>(m * 2048) & 1023));
    return {static_cast<uint16_t>(bits | (x < 0 ? 0x8000 : 0))};
  } else {
    return static_cast<T>(x);
  }
}
template <class T>
double value(T x) {
  if constexpr (std::is_same_v<T, BF16>) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float f;
    std::memcpy(&f, &bits, sizeof(f));
    return f;
  } else if constexpr (std::is_same_v<T, F16>) {
    const int e = x.bits >> 10 & 31, m = x.bits & 1023;
    const double size = e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25);
    return x.bits >> 15 ? -size : size;
  } else {
    return static_cast<double>(x);
  }
}
template <class T>
double epsilon() {
  return std::is_same_v<T, BF16> ? 1.0 / 256 : std::is_same_v<T, F16> ? 1.0 / 2048 : 6e-8;
}

template <class T>
std::vector<T> numbers(int64_t n, uint32_t seed) {
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) {
    seed = seed * 1664525 + 1013904223;
    const int64_t i = static_cast<int64_t>(seed >> 24) % 15 - 7;
    v = stored<T>(std::is_unsigned_v<T>   ? static_cast<float>(i + 7)
                  : std::is_integral_v<T> ? static_cast<float>(i)
                                          : static_cast<float>(i) / 4);
  }
  return x;
}

template <class T>
struct Problem {
  Conv<T> c;
  std::vector<T> input, weight, bias, residual, out;

  explicit Problem(const Case& z) {
    c.batch = z.batch, c.groups = z.groups, c.group_in = z.group_in, c.group_out = z.group_out;
    c.transposed = z.transposed, c.act = z.act;
    for (int d = 0; d < 3; ++d) {
      ConvAxis& a = c.axis[d];
      a = z.axis[d];
      const int64_t reach = a.dilation * (a.kernel - 1) + 1;
      a.out = z.transposed ? (a.in - 1) * a.stride - 2 * a.padding + reach
                           : (a.in + 2 * a.padding - reach) / a.stride + 1;
    }
    const int64_t in = z.groups * z.group_in, results = z.groups * z.group_out;
    c.in_channel = lay_out(z.in, in, c.axis, &ConvAxis::in, &ConvAxis::in_stride);
    c.out_channel = lay_out(z.out, results, c.axis, &ConvAxis::out, &ConvAxis::out_stride);
    c.weight_in =
        lay_out(z.weight, z.group_in, c.axis, &ConvAxis::kernel, &ConvAxis::weight_stride);
    c.in_batch = in * c.axis[0].in * c.axis[1].in * c.axis[2].in;
    c.out_batch = results * c.pixels();
    c.weight_out = z.group_in * c.taps();
    c.weight_group = z.group_out * c.weight_out;
    input = numbers<T>(z.batch * c.in_batch, 1);
    weight = numbers<T>(z.groups * c.weight_group, 2);
    bias = numbers<T>(results, 3);
    residual = numbers<T>(z.batch * c.out_batch, 4);
    out.resize(static_cast<size_t>(z.batch * c.out_batch));
    c.out = out.data();
    c.input = input.data(), c.weight = weight.data();
    if (z.bias) c.bias = bias.data();
    if (z.residual) c.residual = residual.data();
  }

  // The sum for one output, and of its terms' sizes.
  double sum(int64_t b, int64_t g, int64_t o, const int64_t (&x)[3], double* size) const {
    double total = 0;
    for (int64_t i = 0; i < c.group_in; ++i) {
      for (int64_t t = 0; t < c.taps(); ++t) {
        const int64_t k[3] = {t / (c.axis[1].kernel * c.axis[2].kernel),
                              t / c.axis[2].kernel % c.axis[1].kernel, t % c.axis[2].kernel};
        int64_t from = b * c.in_batch + (g * c.group_in + i) * c.in_channel;
        int64_t w = g * c.weight_group + o * c.weight_out + i * c.weight_in;
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          const int64_t at = c.axis[d].position(x[d], k[d], c.transposed);
          inside &= at >= 0;
          from += at * c.axis[d].in_stride;
          w += k[d] * c.axis[d].weight_stride;
        }
        if (!inside) continue;
        const double term =
            value(input[static_cast<size_t>(from)]) * value(weight[static_cast<size_t>(w)]);
        total += term;
        *size += std::fabs(term);
      }
    }
    return total;
  }

  void check() {
    {
      const UsePool alone(nullptr);
      c.run();
    }
    for (int64_t i = 0; i < c.batch * c.groups * c.group_out * c.pixels(); ++i) {
      const int64_t pixel = i % c.pixels(), channel = i / c.pixels() % (c.groups * c.group_out);
      const int64_t b = i / (c.pixels() * c.groups * c.group_out);
      const int64_t x[3] = {pixel / (c.axis[1].out * c.axis[2].out),
                            pixel / c.axis[2].out % c.axis[1].out, pixel % c.axis[2].out};
      int64_t at = b * c.out_batch + channel * c.out_channel;
      for (int d = 0; d < 3; ++d) at += x[d] * c.axis[d].out_stride;
      double size = 0;
      double y = sum(b, channel / c.group_out, channel % c.group_out, x, &size);
      if (c.bias != nullptr) y += value(bias[static_cast<size_t>(channel)]);
      if (c.act.kind == Activation::Kind::Clamp)
        y = std::min(std::max(y, static_cast<double>(c.act.low)), static_cast<double>(c.act.high));
      if (c.residual != nullptr) y += value(residual[static_cast<size_t>(at)]);
      const double bound =
          1.2 * (static_cast<double>(c.group_in * c.taps()) + 4) * 6e-8 * (size + 4) +
          epsilon<T>() * std::fabs(y);
      if constexpr (std::is_integral_v<T>) {
        ASSERT_EQ(out[static_cast<size_t>(at)], static_cast<T>(static_cast<int64_t>(y))) << i;
      } else {
        ASSERT_NEAR(value(out[static_cast<size_t>(at)]), y, bound)
            << "channel " << channel << " at " << x[0] << " " << x[1] << " " << x[2];
      }
    }
  }
};

template <class T>
void check(Case z) {
  for (const Layout in : {Layout::ChannelsFirst, Layout::ChannelsLast, Layout::WidthOutermost}) {
    for (const Layout weight : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      for (const Layout out : {in, Layout::ChannelsFirst}) {
        z.in = in, z.weight = weight, z.out = out;
        SCOPED_TRACE("layouts " + std::to_string(static_cast<int>(in)) +
                     std::to_string(static_cast<int>(weight)) +
                     std::to_string(static_cast<int>(out)));
        Problem<T>(z).check();
      }
    }
  }
}

template <class F>
void for_each_target(const F& f) {
  for (int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0;
       targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

template <class T>
class ConvOf : public testing::Test {};
using Types = testing::Types<float, F16, BF16, double, uint8_t, int32_t, int64_t>;
TYPED_TEST_SUITE(ConvOf, Types);

TYPED_TEST(ConvOf, AgreesInOneTwoAndThreeDimensions) {
  for_each_target([] {
    check<TypeParam>({.axis = {axis(1, 1), axis(1, 1), axis(40, 3, 1, 1)}});
    check<TypeParam>({.axis = {axis(1, 1), axis(9, 3, 1, 1), axis(11, 3, 1, 1)}});
    check<TypeParam>({.batch = 2, .axis = {axis(4, 2), axis(5, 3, 1, 1), axis(6, 2)}});
  });
}

TYPED_TEST(ConvOf, AgreesForStridesPaddingAndDilation) {
  for_each_target([] {
    for (const int64_t stride : {1, 2, 3}) {
      check<TypeParam>({.axis = {axis(1, 1), axis(17, 3, stride, 1), axis(45, 5, stride, 3)}});
      check<TypeParam>({.axis = {axis(1, 1), axis(17, 3, 2, 2, 2), axis(19, 3, stride, 0, 3)}});
      check<TypeParam>({.axis = {axis(1, 1), axis(7, 1, stride), axis(37, 1, stride)}});
    }
  });
}

TYPED_TEST(ConvOf, AgreesForPointwiseAndGroups) {
  check<TypeParam>(
      {.batch = 2, .group_in = 33, .group_out = 20, .axis = {axis(1, 1), axis(7, 1), axis(9, 1)}});
  check<TypeParam>({.groups = 3,
                    .group_in = 4,
                    .group_out = 6,
                    .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(9, 3)}});
  check<TypeParam>({.groups = 12,
                    .group_in = 1,
                    .group_out = 2,
                    .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(9, 3)}});
}

TYPED_TEST(ConvOf, AgreesForOneChannelPerGroup) {
  for_each_target([] {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t dilation : {1, 2}) {
        check<TypeParam>({.batch = 2,
                          .groups = 21,
                          .group_in = 1,
                          .group_out = 1,
                          .axis = {axis(1, 1), axis(9, 3, stride, 1, dilation),
                                   axis(40, 3, stride, 2, dilation)}});
      }
    }
    check<TypeParam>({.groups = 5,
                      .group_in = 1,
                      .group_out = 1,
                      .axis = {axis(3, 2, 1, 1), axis(12, 9, 1, 4), axis(12, 9, 2, 4)}});
  });
}

TEST(Conv, AgreesWhereTilesAreTransformed) {
  for_each_target([] {
    for (const auto& [in, out] : {std::pair{16, 20}, {33, 40}}) {
      for (const auto& [height, width] : {std::pair{14, 14}, {9, 31}, {28, 27}}) {
        for (const int64_t padding : {0, 1, 2}) {
          for (const Layout weight : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
            Case z = {.group_in = in,
                      .group_out = out,
                      .axis = {axis(1, 1), axis(height, 3, 1, padding), axis(width, 3, 1, padding)},
                      .weight = weight};
            Problem<float>(z).check();
            z.residual = true;
            z.act = relu();
            Problem<float>(z).check();
          }
        }
      }
    }
  });
}

TEST(Conv, AgreesForDeepSums) {
  for_each_target([] {
    for (const bool residual : {false, true}) {
      Case z = {.group_in = 1700, .group_out = 13, .axis = {axis(1, 1), axis(7, 1), axis(7, 1)}};
      z.residual = residual;
      Problem<float>(z).check();
      z.group_in = 190;
      z.axis[1] = z.axis[2] = axis(13, 3, 2, 1);
      Problem<float>(z).check();
    }
  });
}

TEST(Conv, AgreesForRowsThatFillVectors) {
  for_each_target([] {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t padding : {0, 2, 3}) {
        Problem<float>({.group_in = 3,
                        .group_out = 19,
                        .axis = {axis(1, 1), axis(19, 7, stride, padding),
                                 axis(62 * stride + 2, 5, stride, padding)},
                        .act = relu()})
            .check();
      }
    }
  });
}

TYPED_TEST(ConvOf, AgreesTransposed) {
  for (const int64_t stride : {1, 2}) {
    check<TypeParam>({.groups = 2,
                      .axis = {axis(1, 1), axis(6, 3, stride, 1), axis(7, 2, stride)},
                      .transposed = true});
  }
}

// Strides against kernels, paddings and dilations; outputs that meet no tap or no input.
TEST(Conv, AgreesTransposedWithStrides) {
  for (const int64_t stride : {2, 3}) {
    for (const int64_t kernel : {1, 2, 3, 7}) {
      for (const int64_t padding : {0, 1, 3}) {
        for (const int64_t dilation : {1, 2}) {
          if ((kernel - 1) * dilation < padding) continue;
          check<float>({.batch = 2,
                        .groups = 2,
                        .axis = {axis(1, 1), axis(4, 3, stride, 1),
                                 axis(9, kernel, stride, padding, dilation)},
                        .transposed = true,
                        .act = relu()});
        }
      }
    }
  }
  check<float>({.axis = {axis(3, 3, 2, 1), axis(4, 2, 2), axis(5, 3, 3)}, .transposed = true});
  check<float>({.groups = 6,
                .group_in = 1,
                .group_out = 1,
                .axis = {axis(1, 1), axis(5, 4, 2, 1), axis(21, 4, 2, 1)},
                .transposed = true});
  check<float>({.group_in = 16,
                .group_out = 33,
                .axis = {axis(1, 1), axis(2, 4, 4, 3), axis(6, 9, 2, 8)},
                .transposed = true});
  check<float>({.axis = {axis(1, 1), axis(5, 4, 2, 1), axis(6, 4, 2, 1)},
                .transposed = true,
                .in = Layout::ChannelsLast,
                .out = Layout::ChannelsLast});
}

template <class T>
class ActivatedConv : public testing::Test {};
using FloatingTypes = testing::Types<float, F16, BF16>;
TYPED_TEST_SUITE(ActivatedConv, FloatingTypes);

TYPED_TEST(ActivatedConv, AppliesTheFunctionBeforeTheResidual) {
  for (const bool residual : {false, true}) {
    check<TypeParam>({.axis = {axis(1, 1), axis(9, 3, 1, 1), axis(20, 3, 1, 1)},
                      .residual = residual,
                      .act = relu()});
    check<TypeParam>({.groups = 7,
                      .group_in = 1,
                      .group_out = 1,
                      .axis = {axis(1, 1), axis(9, 3, 1, 1), axis(20, 3, 1, 1)},
                      .bias = false,
                      .residual = residual,
                      .act = {Activation::Kind::Clamp, 0, 6}});
  }
}

TEST(Conv, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Case& z :
       {Case{.group_in = 20, .group_out = 70, .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}},
        Case{.groups = 30,
        .group_in = 1,
        .group_out = 1,
        .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}},
        Case{.group_in = 300, .group_out = 70, .axis = {axis(1, 1), axis(7, 3, 1, 1), axis(7, 3)}},
        Case{.group_in = 90, .group_out = 170, .axis = {axis(1, 1), axis(14, 1), axis(14, 1)}},
        Case{.groups = 9,
        .group_in = 8,
        .group_out = 8,
        .axis = {axis(1, 1), axis(40, 3, 1, 1), axis(40, 3)}}}) {
    for (const Layout layout : {Layout::ChannelsFirst, Layout::ChannelsLast}) {
      Case laid_out = z;
      laid_out.in = laid_out.out = layout;
      Problem<float> problem(laid_out);
      std::vector<float> first;
      for (const size_t threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        const UsePool use(&pool);
        problem.c.run();
        if (first.empty()) first = problem.out;
        EXPECT_EQ(first, problem.out) << threads << " threads";
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
