// Convolutions, poolings and resizing against their definition in double.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/backends/xnnpack/runtime/planar.h>

#include <cmath>

namespace executorch::backends::xnnpack::testing {
namespace {

struct Image {
  uint32_t n, h, w, c;
  size_t numel() const { return size_t{n} * h * w * c; }
  Dims dims() const { return {n, h, w, c}; }
  Sizes sizes() const { return {int(n), int(h), int(w), int(c)}; }
  size_t at(int64_t i, int64_t y, int64_t x, int64_t channel) const {
    return static_cast<size_t>(((i * h + y) * w + x) * c + channel);
  }
};

struct Convolution {
  Kind kind;
  Image in;
  uint32_t size[2], stride, padding, dilation, groups, inputs, outputs;
  uint32_t adjustment = 0;

  Image out() const {
    Image o{in.n, 0, 0, groups * outputs};
    for (const int axis : {0, 1}) {
      const uint32_t extent = axis == 0 ? in.h : in.w, window = dilation * (size[axis] - 1) + 1;
      (axis == 0 ? o.h : o.w) = kind == Kind::XNNConvTranspose2d
                                    ? (extent - 1) * stride + adjustment + window - 2 * padding
                                    : (extent + 2 * padding - window) / stride + 1;
    }
    return o;
  }
  Dims filter() const {
    if (kind == Kind::XNNDepthwiseConv2d) return {1, size[0], size[1], groups * outputs};
    return {groups * outputs, size[0], size[1], inputs};
  }
  size_t weight(uint32_t o, uint32_t ky, uint32_t kx, uint32_t i) const {
    const size_t tap = size_t{ky} * size[1] + kx;
    if (kind == Kind::XNNDepthwiseConv2d) return tap * groups * outputs + o;
    return (size_t{o} * size[0] * size[1] + tap) * inputs + i;
  }
  void add(PayloadBuilder& b, uint32_t x, uint32_t w, uint32_t bias, uint32_t y) const {
    b.node(kind,
           fb::Create_XNNNodeConv(b.fbb, padding, padding, padding, padding, size[0], size[1],
                                  stride, stride, dilation, dilation, inputs, outputs, groups,
                                  adjustment, adjustment, x, w, bias, y),
           -5, 5);
  }
  /// By scattering for a transposed one, as it is defined.
  std::vector<double> expected(const std::vector<double>& x, const std::vector<double>& w,
                               const std::vector<double>& bias) const {
    const Image o = out();
    std::vector<double> y(o.numel());
    for (size_t i = 0; i < y.size(); ++i) y[i] = bias[i % o.c];
    const bool scatter = kind == Kind::XNNConvTranspose2d;
    const Image& base = scatter ? in : o;
    const Image& other = scatter ? o : in;
    for (uint32_t n = 0; n < in.n; ++n) {
      for (uint32_t by = 0; by < base.h; ++by) {
        for (uint32_t bx = 0; bx < base.w; ++bx) {
          for (uint32_t ky = 0; ky < size[0]; ++ky) {
            for (uint32_t kx = 0; kx < size[1]; ++kx) {
              const int64_t oy = int64_t{by} * stride + ky * dilation - padding;
              const int64_t ox = int64_t{bx} * stride + kx * dilation - padding;
              if (oy < 0 || ox < 0 || oy >= other.h || ox >= other.w) continue;
              for (uint32_t oc = 0; oc < o.c; ++oc) {
                for (uint32_t ic = 0; ic < inputs; ++ic) {
                  const uint32_t channel = oc / outputs * inputs + ic;
                  const size_t from =
                      scatter ? in.at(n, by, bx, channel) : in.at(n, oy, ox, channel);
                  const size_t to = scatter ? o.at(n, oy, ox, oc) : o.at(n, by, bx, oc);
                  y[to] += x[from] * w[weight(oc, ky, kx, ic)];
                }
              }
            }
          }
        }
      }
    }
    for (double& v : y) v = std::min(std::max(v, -5.0), 5.0);
    return y;
  }
};

const Convolution kConvolutions[] = {
    {Kind::XNNConv2d, {2, 7, 6, 5}, {3, 2}, 1, 1, 1, 1, 5, 4},
    {Kind::XNNConv2d, {1, 9, 9, 4}, {3, 3}, 2, 0, 2, 2, 2, 3},
    {Kind::XNNConv2d, {2, 4, 4, 6}, {1, 1}, 1, 0, 1, 1, 6, 5},
    {Kind::XNNConv2d, {1, 5, 5, 3}, {1, 1}, 2, 0, 1, 1, 3, 2},
    {Kind::XNNDepthwiseConv2d, {2, 6, 5, 7}, {3, 3}, 1, 1, 1, 7, 1, 1},
    {Kind::XNNDepthwiseConv2d, {1, 7, 7, 3}, {5, 5}, 2, 2, 1, 3, 1, 2},
    {Kind::XNNDepthwiseConv2d, {2, 6, 9, 1}, {3, 2}, 1, 1, 1, 1, 1, 6},
    {Kind::XNNConvTranspose2d, {1, 4, 5, 3}, {3, 3}, 2, 1, 1, 1, 3, 4, 1},
    {Kind::XNNConvTranspose2d, {2, 3, 3, 4}, {2, 2}, 2, 0, 1, 2, 2, 3},
};

TEST(XnnpackConvolution, ComputesEachKindInFloatAndHalf) {
  for (const Convolution& c : kConvolutions) {
    for (const bool half : {false, true}) {
      SCOPED_TRACE(fb::EnumNameXNodeUnion(c.kind));
      const Image out = c.out();
      Floats x = numbers(c.in.numel());
      if (half) {
        for (float& v : x) v = static_cast<float>(aten::Half(v));
      }
      const Dims filter = c.filter();
      const Floats w = numbers(size_t{filter[0]} * filter[1] * filter[2] * filter[3], -1, 1, 3);
      const Floats bias = numbers(out.c, -1, 1, 5);
      PayloadBuilder b;
      const Type type = half ? Type::fp16 : Type::fp32;
      const uint32_t in = b.input(type, c.in.dims()), weights = b.constant(Type::fp32, filter, w),
                     add = b.constant(Type::fp32, {out.c}, bias), y = b.output(type, out.dims());
      c.add(b, in, weights, add, y);
      Loaded loaded(b);
      ASSERT_EQ(loaded.error, Error::Ok);
      const auto result = half ? halves.zeros(out.sizes()) : floats.zeros(out.sizes());
      const auto tensor = half ? halves.make(c.in.sizes(), {x.begin(), x.end()})
                               : floats.make(c.in.sizes(), {x.begin(), x.end()});
      ASSERT_EQ(loaded.run({tensor, result}), Error::Ok);
      const auto expected =
          c.expected({x.begin(), x.end()}, {w.begin(), w.end()}, {bias.begin(), bias.end()});
      Floats found;
      if (half) {
        for (const aten::Half v : elements<aten::Half>(result))
          found.push_back(static_cast<float>(v));
      } else {
        found = elements(result);
      }
      expect_near(found, expected, half ? 0x1p12 : 100);
    }
  }
}

// A network whose images the runtime keeps as planes, because it lies between two transposes, or
// as they are given and taken, NHWC. `add_nodes` adds the nodes from value `first` to `result`.
template <class F>
Floats run_network(bool planar, const Image& in, const Image& out, const Floats& x,
                   const F& add_nodes) {
  PayloadBuilder b;
  const auto flip = [](const Image& i) { return Dims{i.n, i.c, i.h, i.w}; };
  const auto transpose = [&](std::vector<uint32_t> dims, uint32_t from, uint32_t to) {
    b.node(Kind::XNNStaticTranspose,
           fb::CreateXNNStaticTranspose(b.fbb, 4, b.fbb.CreateVector(dims), from, to));
  };
  const uint32_t x_in = b.input(Type::fp32, planar ? flip(in) : in.dims());
  const uint32_t y_out = b.output(Type::fp32, planar ? flip(out) : out.dims());
  const uint32_t first = planar ? b.inner(Type::fp32, in.dims()) : x_in;
  const uint32_t result = planar ? b.inner(Type::fp32, out.dims()) : y_out;
  if (planar) transpose({0, 2, 3, 1}, x_in, first);
  add_nodes(b, first, result);
  if (planar) transpose({0, 3, 1, 2}, result, y_out);
  Loaded loaded(b);
  EXPECT_EQ(loaded.error, Error::Ok);
  const auto sizes = [](const Dims& dims) { return Sizes(dims.begin(), dims.end()); };
  const auto y = floats.zeros(sizes(planar ? flip(out) : out.dims()));
  EXPECT_EQ(loaded.run({floats.make(sizes(planar ? flip(in) : in.dims()), x), y}), Error::Ok);
  return elements(y);
}

template <class F>
void compare_layouts(const Image& in, const Image& out, double terms, const F& add_nodes) {
  const Floats x = numbers(in.numel());
  Floats planes(x.size());
  const auto for_each = [](const Image& i, const auto& f) {
    for (uint32_t n = 0; n < i.n; ++n) {
      for (uint32_t p = 0; p < i.h * i.w; ++p) {
        for (uint32_t c = 0; c < i.c; ++c) {
          f(i.at(n, p / i.w, p % i.w, c), (size_t{n} * i.c + c) * i.h * i.w + p);
        }
      }
    }
  };
  for_each(in, [&](size_t dense, size_t planar) { planes[planar] = x[dense]; });
  const Floats dense = run_network(false, in, out, x, add_nodes);
  const Floats found = run_network(true, in, out, planes, add_nodes);
  std::vector<double> expected(dense.size());
  for_each(out, [&](size_t d, size_t planar) { expected[planar] = dense[d]; });
  expect_near(found, expected, terms);
}

uint32_t constant(PayloadBuilder& b, const Dims& dims, uint32_t seed) {
  size_t n = 1;
  for (const uint32_t d : dims) n *= d;
  return b.constant(Type::fp32, dims, numbers(n, -1, 1, seed));
}

void add_convolution(PayloadBuilder& b, const Convolution& c, uint32_t from, uint32_t to,
                     uint32_t seed) {
  c.add(b, from, constant(b, c.filter(), seed), constant(b, {c.out().c}, seed + 1), to);
}

TEST(XnnpackConvolution, ComputesTheSameOnPlanesBetweenTransposes) {
  const Image in{2, 10, 12, 17}, out{2, 5, 6, 9};
  compare_layouts(in, out, 9 * in.c + 9 + 20, [&](PayloadBuilder& b, uint32_t x, uint32_t y) {
    const auto image = [&](const Image& i) { return b.inner(Type::fp32, i.dims()); };
    const Convolution dense{Kind::XNNConv2d, in, {3, 3}, 1, 1, 1, 1, in.c, 20};
    const Convolution depthwise{Kind::XNNDepthwiseConv2d, dense.out(), {3, 3}, 1, 1, 1, 20, 1, 1};
    const Image pooled{in.n, in.h / 2, in.w / 2, 20};
    const Convolution last{Kind::XNNConv2d, pooled, {1, 1}, 1, 0, 1, 1, 20, out.c};
    const uint32_t wide = image(dense.out()), same = image(dense.out()), sum = image(dense.out()),
                   small = image(pooled), narrow = image(out), mean = image({in.n, 1, 1, out.c});
    add_convolution(b, dense, x, wide, 3);
    add_convolution(b, depthwise, wide, same, 5);
    b.binary(Kind::XNNAdd, wide, same, sum, -3, 3);
    b.node(Kind::XNNMaxPooling2d,
           fb::Create_XNNPooling2D(b.fbb, 1, 0, 0, 1, 3, 3, 2, 2, 1, 1, sum, small, 64), -2, 2);
    add_convolution(b, last, small, narrow, 7);
    b.unary(Kind::XNNGlobalAvgPooling2d, narrow, mean);
    b.binary(Kind::XNNSubtract, narrow, mean, y);
  });
}

TEST(XnnpackConvolution, ComputesTheSameOfDepthwiseFiltersOnPlanes) {
  for (const uint32_t channels : {1u, 5u}) {
    const Image in{2, 10, 12, channels};
    const Convolution layer{Kind::XNNDepthwiseConv2d, in, {3, 3}, 1, 1, 1, channels, 1, 20};
    compare_layouts(in, layer.out(), 9, [&](PayloadBuilder& b, uint32_t x, uint32_t y) {
      const uint32_t wide = b.inner(Type::fp32, layer.out().dims());
      add_convolution(b, layer, x, wide, 3);
      b.unary(Kind::XNNAbs, wide, y);
    });
  }
}

TEST(XnnpackConvolution, OfDepthwiseFiltersAloneIsOnPlanes) {
  const Convolution layer{Kind::XNNDepthwiseConv2d, {1, 8, 8, 3}, {3, 3}, 1, 1, 1, 3, 1, 1};
  PayloadBuilder b;
  const auto transpose = [&b](const Dims& dims, uint32_t from, uint32_t to) {
    b.node(Kind::XNNStaticTranspose,
           fb::CreateXNNStaticTranspose(b.fbb, 4, b.fbb.CreateVector(dims), from, to));
  };
  const uint32_t x = b.input(Type::fp32, {1, 3, 8, 8}), y = b.output(Type::fp32, {1, 3, 8, 8});
  const uint32_t image = b.inner(Type::fp32, {1, 8, 8, 3}), to = b.inner(Type::fp32, {1, 8, 8, 3});
  transpose({0, 2, 3, 1}, x, image);
  add_convolution(b, layer, image, to, 3);
  transpose({0, 3, 1, 2}, to, y);
  const std::vector<uint8_t> bytes = b.build();
  const auto graph = read_graph(bytes.data(), bytes.size(), nullptr);
  ASSERT_TRUE(graph.ok());
  choose_planar_values(**graph);
  EXPECT_TRUE((*graph)->values[image].planar && (*graph)->values[to].planar);
}

// The nodes of a network that goes down and up again: poolings, resizing, transposed convolutions,
// and nodes that name dims; and constants with an element for each channel.
TEST(XnnpackConvolution, MovesTheSameOnPlanesBetweenTransposes) {
  const Image in{2, 8, 12, 5}, out{2, 9, 11, 7};
  compare_layouts(in, out, 9 * in.c + 100, [&](PayloadBuilder& b, uint32_t x, uint32_t y) {
    const auto vec = [&](const Dims& list) { return b.fbb.CreateVector(list); };
    const auto image = [&](const Image& i) { return b.inner(Type::fp32, i.dims()); };
    const Convolution first{Kind::XNNConv2d, in, {3, 3}, 1, 1, 1, 1, in.c, 6};
    const Image half{in.n, in.h / 2, in.w / 2, 6}, both{in.n, in.h, in.w, 16};
    const Convolution up{Kind::XNNConvTranspose2d, half, {2, 2}, 2, 0, 1, 1, 6, 4};
    const Image padded{in.n, in.h + 3, in.w + 1, 16};
    const uint32_t wide = image(first.out()), scaled = image(first.out()),
                   bent = image(first.out()), pooled = image(half), raised = image(up.out()),
                   resized = image(first.out()), joined = image(both), framed = image(padded);
    add_convolution(b, first, x, wide, 3);
    b.binary(Kind::XNNMultiply, wide, constant(b, {1, 1, 1, 6}, 5), scaled);
    b.binary(Kind::XNNPReLU, scaled, constant(b, {6}, 6), bent);
    b.node(Kind::XNNAvgPooling2d,
           fb::Create_XNNPooling2D(b.fbb, 1, 0, 0, 1, 3, 3, 2, 2, 1, 1, bent, pooled, 64));
    add_convolution(b, up, pooled, raised, 7);
    b.node(Kind::XNNStaticResizeBilinear2D,
           fb::CreateXNNStaticResizeBilinear2D(b.fbb, in.h, in.w, pooled, resized, 0));
    b.node(Kind::XNNConcatenate3,
           fb::Create_XNNCat(b.fbb, ~0u, bent, raised, resized, kNoId, joined));
    b.node(Kind::XNNStaticConstantPad,
           fb::CreateXNNStaticConstantPad(b.fbb, vec({0, 1, 0, 0}), vec({0, 2, 1, 0}), 3, joined,
                                          framed));
    b.node(Kind::XNNStaticSlice,
           fb::CreateXNNStaticSlice(b.fbb, 4, vec({0, 1, 2, 4}), vec({0, 9, 11, 7}), framed, y));
  });
}

TEST(XnnpackConvolution, ComputesEachKindOnQuantizedValues) {
  for (const Convolution& c : kConvolutions) {
    SCOPED_TRACE(fb::EnumNameXNodeUnion(c.kind));
    const Image out = c.out();
    const Dims filter = c.filter();
    const Quantization x_q{0.02f, 7}, y_q{0.04f, -3};
    Quantization w_q;
    w_q.channel_dim = c.kind == Kind::XNNDepthwiseConv2d ? 3 : 0;
    w_q.scales = numbers(out.c, 0.005f, 0.02f, 9);
    std::vector<int8_t> x, w;
    std::vector<int32_t> bias;
    std::vector<double> x_real, w_real, bias_real;
    for (const float v : numbers(c.in.numel(), -128, 128)) {
      x.push_back(static_cast<int8_t>(std::floor(v)));
      x_real.push_back((x.back() - 7) * static_cast<double>(0.02f));
    }
    const size_t n_weights = size_t{filter[0]} * filter[1] * filter[2] * filter[3];
    for (const float v : numbers(n_weights, -127, 127, 3)) {
      const size_t channel =
          w_q.channel_dim == 3 ? w.size() % out.c : w.size() / (n_weights / out.c);
      w.push_back(static_cast<int8_t>(std::floor(v)));
      w_real.push_back(w.back() * static_cast<double>(w_q.scales[channel]));
    }
    for (uint32_t i = 0; i < out.c; ++i) {
      bias.push_back(static_cast<int32_t>(i) * 100 - 150);
      bias_real.push_back(bias.back() * static_cast<double>(0.02f) * w_q.scales[i]);
    }
    PayloadBuilder b;
    Quantization bias_q;
    bias_q.scales = w_q.scales;
    const uint32_t in = b.input(Type::qint8, c.in.dims(), x_q),
                   weights = b.constant(Type::qcint8, filter, w, w_q),
                   add = b.constant(Type::qcint32, {out.c}, bias, bias_q),
                   y = b.output(Type::qint8, out.dims(), y_q);
    c.add(b, in, weights, add, y);
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    Tensors<ScalarType::Char> bytes;
    const auto result = bytes.zeros(out.sizes());
    ASSERT_EQ(loaded.run({bytes.make(c.in.sizes(), x), result}), Error::Ok);
    const auto expected = c.expected(x_real, w_real, bias_real);
    const auto found = elements<int8_t>(result);
    for (size_t i = 0; i < found.size(); ++i) {
      const double q = std::min(std::max(expected[i] / 0.04f - 3, -128.0), 127.0);
      EXPECT_NEAR(found[i], q, 0.501) << i;
    }
  }
}

TEST(XnnpackPooling, ReducesWindowsWithoutTheirPadding) {
  const Image in{2, 7, 6, 3};
  const Floats x = numbers(in.numel());
  for (const Kind kind : {Kind::XNNMaxPooling2d, Kind::XNNAvgPooling2d}) {
    const Image out{2, 4, 3, 3};  // 3 x 3 windows, 2 apart, 1 around
    std::vector<double> expected(out.numel());
    for (uint32_t n = 0; n < 2; ++n) {
      for (uint32_t y = 0; y < out.h; ++y) {
        for (uint32_t xo = 0; xo < out.w; ++xo) {
          for (uint32_t c = 0; c < 3; ++c) {
            double most = -INFINITY, sum = 0;
            int count = 0;
            for (int ky = -1; ky < 2; ++ky) {
              for (int kx = -1; kx < 2; ++kx) {
                const int iy = static_cast<int>(y) * 2 + ky, ix = static_cast<int>(xo) * 2 + kx;
                if (iy < 0 || ix < 0 || iy >= 7 || ix >= 6) continue;
                const double v = x[in.at(n, iy, ix, c)];
                most = std::max(most, v);
                sum += v;
                ++count;
              }
            }
            expected[out.at(n, y, xo, c)] = kind == Kind::XNNMaxPooling2d ? most : sum / count;
          }
        }
      }
    }
    const auto found = run_unary(
        [&](auto& b, uint32_t i, uint32_t o) {
          b.node(kind, fb::Create_XNNPooling2D(b.fbb, 1, 1, 1, 1, 3, 3, 2, 2,
                                               kind == Kind::XNNMaxPooling2d ? 1 : 0,
                                               kind == Kind::XNNMaxPooling2d ? 1 : 0, i, o, 64));
        },
        in.dims(), x, out.dims());
    expect_near(found, expected, 10);
  }
}

TEST(XnnpackPooling, TakesTheLargestOfIntegersWithinBounds) {
  PayloadBuilder b;
  const Quantization q{0.5f, -10};
  const uint32_t x = b.input(Type::qint8, {1, 2, 3, 2}, q),
                 y = b.output(Type::qint8, {1, 2, 2, 2}, q);
  // 2 x 2 windows with a row of padding above; results from -20 to 20, or -50 to 30.
  b.node(Kind::XNNMaxPooling2d,
         fb::Create_XNNPooling2D(b.fbb, 1, 0, 0, 0, 2, 2, 1, 1, 1, 1, x, y, 0), -20, 20);
  Tensors<ScalarType::Char> bytes;
  const auto out = bytes.zeros({1, 2, 2, 2});
  Loaded loaded(b);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(
      loaded.run({bytes.make({1, 2, 3, 2}, {1, -90, 100, -80, 3, -70, 5, 6, -7, 8, 9, -128}), out}),
      Error::Ok);
  EXPECT_EQ(elements<int8_t>(out), (std::vector<int8_t>{30, -50, 30, -50, 30, 8, 30, 8}));
}

TEST(XnnpackPooling, AveragesWholeImages) {
  const auto found =
      run_unary([](auto& b, uint32_t i, uint32_t o) { b.unary(Kind::XNNGlobalAvgPooling2d, i, o); },
                {1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40}, {1, 1, 1, 2});
  EXPECT_EQ(found, (Floats{2.5f, 25}));
}

TEST(XnnpackPooling, ArgMaxGivesTheFirstOfTheLargestAsInt32OrInt64) {
  for (const bool wide : {false, true}) {
    PayloadBuilder b;
    const uint32_t x = b.input(Type::fp32, {1, 1, 4, 2}), y = b.output(Type::fp32, {1, 1, 1, 2}),
                   index = b.output(Type::int32, {1, 1, 1, 2});
    b.node(Kind::XNNArgMaxPooling2d,
           fb::CreateXNNArgMaxPooling2d(b.fbb, 0, 0, 0, 0, 1, 4, x, y, index));
    Tensors<ScalarType::Long> longs;
    Tensors<ScalarType::Int> ints;
    const auto values = floats.zeros({1, 1, 1, 2});
    const auto indices = wide ? longs.zeros({1, 1, 1, 2}) : ints.zeros({1, 1, 1, 2});
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    ASSERT_EQ(loaded.run({floats.make({1, 1, 4, 2}, {1, 5, 3, 4, 2, 5, 3, 0}), values, indices}),
              Error::Ok);
    EXPECT_EQ(elements(values), (Floats{3, 5}));
    if (wide) {
      EXPECT_EQ(elements<int64_t>(indices), (std::vector<int64_t>{1, 0}));
    } else {
      EXPECT_EQ(elements<int32_t>(indices), (std::vector<int32_t>{1, 0}));
    }
  }
}

TEST(XnnpackResize, InterpolatesBetweenCentresOrCorners) {
  const Floats x = {0, 4};
  for (const bool corners : {false, true}) {
    const auto found = run_unary(
        [&](auto& b, uint32_t i, uint32_t o) {
          b.node(Kind::XNNStaticResizeBilinear2D,
                 fb::CreateXNNStaticResizeBilinear2D(b.fbb, 1, 4, i, o, corners ? 8 : 0));
        },
        {1, 1, 2, 1}, x, {1, 1, 4, 1});
    expect_near(
        found,
        corners ? std::vector<double>{0, 4.0 / 3, 8.0 / 3, 4} : std::vector<double>{0, 1, 3, 4}, 2);
  }
}

void compare_resized_channels(const Image& in, const Image& out) {
  Floats x(in.numel());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) - 50;
  const auto resized = [&](uint32_t n_channels, const Floats& from, bool corners) {
    return run_unary(
        [&](auto& b, uint32_t i, uint32_t o) {
          b.node(Kind::XNNStaticResizeBilinear2D,
                 fb::CreateXNNStaticResizeBilinear2D(b.fbb, out.h, out.w, i, o, corners ? 8 : 0));
        },
        {in.n, in.h, in.w, n_channels}, from, {out.n, out.h, out.w, n_channels});
  };
  for (const bool corners : {false, true}) {
    const Floats many = resized(20, x, corners);
    for (const uint32_t n : {1u, 3u, 15u}) {
      Floats some, expected;
      for (size_t pixel = 0; pixel < in.numel() / 20; ++pixel) {
        for (size_t c = 0; c < n; ++c) some.push_back(x[pixel * 20 + c]);
      }
      for (size_t pixel = 0; pixel < out.numel() / 20; ++pixel) {
        for (size_t c = 0; c < n; ++c) expected.push_back(many[pixel * 20 + c]);
      }
      EXPECT_EQ(resized(n, some, corners), expected) << n << " channels";
    }
  }
}

TEST(XnnpackResize, GivesChannelsTheSameHoweverManyThereAre) {
  compare_resized_channels({2, 3, 5, 20}, {2, 7, 4, 20});
  compare_resized_channels({3, 2, 312, 20}, {3, 701, 2, 20});  // several rows in a run
  compare_resized_channels({2, 50, 3, 20}, {2, 7, 1, 20});
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
