/// Convolutions for tests, against the definition in double. The bound is that of any order of
/// summation, (terms + 4) eps sum |x w|, and one rounding to the stored type.
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace executorch::cpu::conv_testing {

enum class Layout { ChannelsFirst, ChannelsLast, WidthOutermost };

struct Case {
  int64_t batch = 1, groups = 1, group_in = 3, group_out = 5;
  ConvAxis axis[3] = {};
  bool transposed = false;
  Layout in = Layout::ChannelsFirst, weight = Layout::ChannelsFirst, out = Layout::ChannelsFirst;
  bool bias = true, residual = false;
  Activation act = {};
  bool given_out = false;  // the axes' `out`; else what follows from the rest
};

inline ConvAxis axis(int64_t in, int64_t kernel, int64_t stride = 1, int64_t padding = 0,
                     int64_t dilation = 1) {
  ConvAxis a;
  a.in = in, a.kernel = kernel, a.stride = stride, a.padding = padding, a.dilation = dilation;
  return a;
}

// Strides of [channels, x0, x1, x2]; returns the channel's.
inline int64_t lay_out(Layout layout, int64_t channels, ConvAxis (&axis)[3],
                       int64_t ConvAxis::*extent, int64_t ConvAxis::*stride) {
  int64_t next = layout == Layout::ChannelsLast ? channels : 1;
  const int forward[] = {2, 1, 0}, backward[] = {1, 0, 2};
  for (const int d : layout == Layout::WidthOutermost ? backward : forward) {
    axis[d].*stride = next;
    next *= axis[d].*extent;
  }
  return layout == Layout::ChannelsLast ? 1 : next;
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
      if (z.given_out) continue;
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
      HeapScratch scratch;
      ASSERT_TRUE(c.run(scratch));
    }
    compare();
  }

  void compare() const {
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

}  // namespace executorch::cpu::conv_testing
