// Each kind of node against its definition in double.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>

#include <cmath>
#include <functional>

namespace executorch::backends::xnnpack::testing {
namespace {

Tensors<ScalarType::Float> floats;
Tensors<ScalarType::Half> halves;

/// One node from `x` to a result of `out` dims, in float.
Floats run_unary(const std::function<void(PayloadBuilder&, uint32_t, uint32_t)>& add,
                 const Dims& dims, const Floats& x, const Dims& out) {
  PayloadBuilder b;
  const uint32_t in = b.input(Type::fp32, dims), to = b.output(Type::fp32, out);
  add(b, in, to);
  Loaded loaded(b);
  EXPECT_EQ(loaded.error, Error::Ok);
  if (loaded.error != Error::Ok) return {};
  const auto y = floats.zeros(Sizes(out.begin(), out.end()));
  EXPECT_EQ(loaded.run({floats.make(Sizes(dims.begin(), dims.end()), x), y}), Error::Ok);
  return elements(y);
}

struct Function {
  Kind kind;
  std::function<double(double)> of;
  float low = -4, high = 4;
};
const Function kFunctions[] = {
    {Kind::XNNSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {Kind::XNNFloor, [](double x) { return std::floor(x); }},
    {Kind::XNNCeiling, [](double x) { return std::ceil(x); }},
    {Kind::XNNSquareRoot, [](double x) { return std::sqrt(x); }, 0},
    {Kind::XNNReciprocalSquareRoot, [](double x) { return 1 / std::sqrt(x); }, 0.1f},
    {Kind::XNNHardswish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }},
    {Kind::XNNNegate, [](double x) { return -x; }},
    {Kind::XNNSquare, [](double x) { return x * x; }},
    {Kind::XNNAbs, [](double x) { return std::abs(x); }},
    {Kind::XNNLog, [](double x) { return std::log(x); }, 0.1f},
    {Kind::XNNGelu, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
    {Kind::XNNTanh, [](double x) { return std::tanh(x); }},
    {Kind::XNNExp, [](double x) { return std::exp(x); }},
    {Kind::XNNSin, [](double x) { return std::sin(x); }},
    {Kind::XNNCos, [](double x) { return std::cos(x); }},
    {Kind::XNNCopy, [](double x) { return x; }},
    {Kind::XNNConvert, [](double x) { return x; }},
};

TEST(XnnpackUnary, ComputesEachFunction) {
  constexpr size_t kCount = 2500;  // more than a run
  for (const Function& f : kFunctions) {
    SCOPED_TRACE(fb::EnumNameXNodeUnion(f.kind));
    const Floats x = numbers(kCount, f.low, f.high);
    std::vector<double> expected;
    for (const float v : x) expected.push_back(f.of(v));
    const Dims dims = {kCount};
    expect_near(
        run_unary([&](auto& b, uint32_t i, uint32_t o) { b.unary(f.kind, i, o); }, dims, x, dims),
        expected, 4);
  }
}

TEST(XnnpackUnary, ClampEluAndLeakyReluTakeTheirNumbers) {
  const Floats x = {-2, -0.5f, 0, 0.5f, 2};
  const auto with = [&](const auto& add) { return run_unary(add, {5}, x, {5}); };
  EXPECT_EQ(with([](auto& b, uint32_t i, uint32_t o) { b.unary(Kind::XNNClamp, i, o, -1, 1); }),
            (Floats{-1, -0.5f, 0, 0.5f, 1}));
  EXPECT_EQ(with([](auto& b, uint32_t i, uint32_t o) {
              b.node(Kind::XNNLeakyReLU, fb::CreateXNNLeakyReLU(b.fbb, 0.25f, i, o));
            }),
            (Floats{-0.5f, -0.125f, 0, 0.5f, 2}));
  expect_near(with([](auto& b, uint32_t i, uint32_t o) {
                b.node(Kind::XNNELU, fb::CreateXNNELU(b.fbb, 2, i, o));
              }),
              {2 * std::expm1(-2), 2 * std::expm1(-0.5), 0, 0.5, 2}, 2);
}

TEST(XnnpackUnary, HalvesAndQuantisedValuesAreRoundedOnce) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp16, {3}), y = b.output(Type::fp16, {3}),
                 q = b.output(Type::qint8, {3}, {0.5f, 10});
  b.unary(Kind::XNNSquare, x, y);
  b.unary(Kind::XNNConvert, x, q);
  Loaded loaded(b);
  Tensors<ScalarType::Char> bytes;
  const auto squares = halves.zeros({3});
  const auto integers = bytes.zeros({3});
  ASSERT_EQ(loaded.run({halves.make({3}, {1.5, -100, 0.75}), squares, integers}), Error::Ok);
  EXPECT_EQ(static_cast<float>(elements<aten::Half>(squares)[1]), 10000);
  // 3 + 10; held at -128; 1.5 goes to even.
  EXPECT_EQ(elements<int8_t>(integers), (std::vector<int8_t>{13, -128, 12}));
}

TEST(XnnpackBinary, BroadcastsAsNumpyDoes) {
  struct Example {
    Dims a, b, y;
  };
  const Example examples[] = {{{2, 3, 4}, {2, 3, 4}, {2, 3, 4}},
                              {{2, 3, 4}, {3, 1}, {2, 3, 4}},
                              {{1}, {2, 5}, {2, 5}},
                              {{2, 1, 4}, {1, 3, 1}, {2, 3, 4}},
                              {{1, 1}, {1}, {1, 1}}};
  const std::pair<Kind, std::function<double(double, double)>> functions[] = {
      {Kind::XNNAdd, std::plus<>()},
      {Kind::XNNSubtract, std::minus<>()},
      {Kind::XNNMultiply, std::multiplies<>()},
      {Kind::XNNDiv, std::divides<>()},
      {Kind::XNNMinimum, [](double a, double b) { return std::min(a, b); }},
      {Kind::XNNMaximum, [](double a, double b) { return std::max(a, b); }}};
  const auto count = [](const Dims& d) {
    size_t n = 1;
    for (const uint32_t extent : d) n *= extent;
    return n;
  };
  const auto at = [](const Dims& d, const Dims& out, size_t index) {
    size_t offset = 0, step = 1;
    for (size_t i = 0; i < out.size(); ++i) {
      const uint32_t extent = i < d.size() ? d[d.size() - 1 - i] : 1;
      if (extent != 1) offset += index % out[out.size() - 1 - i] * step;
      index /= out[out.size() - 1 - i];
      step *= extent;
    }
    return offset;
  };
  for (const Example& e : examples) {
    for (const auto& [kind, of] : functions) {
      SCOPED_TRACE(fb::EnumNameXNodeUnion(kind));
      PayloadBuilder b;
      const uint32_t x = b.input(Type::fp32, e.a), w = b.input(Type::fp32, e.b),
                     y = b.output(Type::fp32, e.y);
      b.binary(kind, x, w, y, -3, 3);
      Loaded loaded(b);
      const Floats p = numbers(count(e.a)), q = numbers(count(e.b), 0.5f, 2, 7);
      const auto out = floats.zeros(Sizes(e.y.begin(), e.y.end()));
      ASSERT_EQ(loaded.run({floats.make(Sizes(e.a.begin(), e.a.end()), {p.begin(), p.end()}),
                            floats.make(Sizes(e.b.begin(), e.b.end()), {q.begin(), q.end()}), out}),
                Error::Ok);
      std::vector<double> expected;
      for (size_t i = 0; i < count(e.y); ++i) {
        const double v = of(p[at(e.a, e.y, i)], q[at(e.b, e.y, i)]);
        expected.push_back(std::min(std::max(v, -3.0), 3.0));
      }
      expect_near(elements(out), expected, 1);
    }
  }
}

TEST(XnnpackBinary, PreluScalesNegativeNumbersByChannel) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2, 2});
  const uint32_t slope = b.constant(Type::fp32, {2}, Floats{0.5f, -1});
  const uint32_t y = b.output(Type::fp32, {2, 2});
  b.binary(Kind::XNNPReLU, x, slope, y);
  const auto out = floats.zeros({2, 2});
  ASSERT_EQ(Loaded(b).run({floats.make({2, 2}, {-2, -2, 2, 2}), out}), Error::Ok);
  EXPECT_EQ(elements(out), (Floats{-1, 2, 2, 2}));
}

TEST(XnnpackBinary, AddsAndMultipliesQuantisedValues) {
  const Quantisation a{0.1f, 3}, c{0.05f, -7}, result{0.2f, 5};
  PayloadBuilder b;
  const uint32_t x = b.input(Type::qint8, {256}, a), w = b.input(Type::qint8, {256}, c),
                 sum = b.output(Type::qint8, {256}, result),
                 product = b.output(Type::qint8, {256}, result);
  b.binary(Kind::XNNAdd, x, w, sum);
  b.binary(Kind::XNNMultiply, x, w, product);
  std::vector<int8_t> p, q;
  for (int i = -128; i < 128; ++i) {
    p.push_back(static_cast<int8_t>(i));
    q.push_back(static_cast<int8_t>(i * 7));
  }
  Tensors<ScalarType::Char> bytes;
  const auto sums = bytes.zeros({256}), products = bytes.zeros({256});
  ASSERT_EQ(Loaded(b).run({bytes.make({256}, p), bytes.make({256}, q), sums, products}), Error::Ok);
  for (size_t i = 0; i < 256; ++i) {
    const double v = (p[i] - 3) * 0.1, u = (q[i] + 7) * 0.05;
    const auto held = [](double y) { return std::min(std::max(y / 0.2 + 5, -128.0), 127.0); };
    // Half a step of rounding, and of what float does to ties.
    EXPECT_NEAR(elements<int8_t>(sums)[i], held(v + u), 0.5001);
    EXPECT_NEAR(elements<int8_t>(products)[i], held(v * u), 0.5001);
  }
}

TEST(XnnpackSoftmax, SumsToOneAlongTheLastDim) {
  const Floats x = numbers(3 * 50, -20, 20);
  std::vector<double> expected;
  for (size_t r = 0; r < 3; ++r) {
    double sum = 0;
    for (size_t i = 0; i < 50; ++i) sum += std::exp(static_cast<double>(x[r * 50 + i]));
    for (size_t i = 0; i < 50; ++i)
      expected.push_back(std::exp(static_cast<double>(x[r * 50 + i])) / sum);
  }
  expect_near(run_unary([](auto& b, uint32_t i, uint32_t o) { b.unary(Kind::XNNSoftmax, i, o); },
                        {3, 50}, x, {3, 50}),
              expected, 50);
}

TEST(XnnpackMovement, MovesElementsOfAnyType) {
  Floats x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Dims dims = {2, 3, 4};
  const auto vec = [](PayloadBuilder& b, const Dims& list) { return b.fbb.CreateVector(list); };
  const auto turned = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticTranspose,
               fb::CreateXNNStaticTranspose(b.fbb, 3, vec(b, {2, 0, 1}), i, o));
      },
      dims, x, {4, 2, 3});
  EXPECT_EQ(turned[1 * 6 + 1 * 3 + 2], x[1 * 12 + 2 * 4 + 1]);
  const auto shaped = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticReshape, fb::CreateXNNStaticReshape(b.fbb, 2, vec(b, {4, 0}), i, o));
      },
      dims, x, {4, 6});
  EXPECT_EQ(shaped, x);
  const auto sliced = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticSlice,
               fb::CreateXNNStaticSlice(b.fbb, 3, vec(b, {1, 0, 1}), vec(b, {1, 0, 2}), i, o));
      },
      dims, x, {1, 3, 2});
  EXPECT_EQ(sliced, (Floats{13, 14, 17, 18, 21, 22}));
  const auto padded = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticConstantPad,
               fb::CreateXNNStaticConstantPad(b.fbb, vec(b, {0, 1}), vec(b, {1, 2}), 9, i, o));
      },
      {1, 2}, {1, 2}, {2, 5});
  EXPECT_EQ(padded, (Floats{9, 1, 2, 9, 9, 9, 9, 9, 9, 9}));
}

TEST(XnnpackMovement, ConcatenatesAlongAnyAxisAndConvertsWhereTheTypeDiffers) {
  for (const bool from_the_end : {false, true}) {
    PayloadBuilder b;
    const uint32_t x = b.input(Type::qint8, {2, 1}, {0.5f, 1}), w = b.input(Type::fp32, {2, 2}),
                   y = b.output(Type::qint8, {2, 3}, {0.25f, 0});
    b.node(Kind::XNNConcatenate2,
           fb::Create_XNNCat(b.fbb, from_the_end ? ~0u : 1, x, w, kNoId, kNoId, y));
    Tensors<ScalarType::Char> bytes;
    const auto out = bytes.zeros({2, 3});
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    ASSERT_EQ(loaded.run({bytes.make({2, 1}, {3, 5}), floats.make({2, 2}, {1, 2, 3, 4}), out}),
              Error::Ok);
    EXPECT_EQ(elements<int8_t>(out), (std::vector<int8_t>{4, 4, 8, 8, 12, 16}));
  }
}

TEST(XnnpackMatmul, MultipliesByWeightsEitherWayRound) {
  const size_t m = 5, k = 19, n = 7;
  const Floats x = numbers(m * k), w = numbers(n * k, -1, 1, 3), bias = numbers(n, -1, 1, 5);
  for (const bool transposed : {false, true}) {
    for (const Type type : {Type::fp32, Type::fp16}) {
      PayloadBuilder b;
      const uint32_t in = b.input(Type::fp32, {m, k});
      const uint32_t filter = b.input(type, transposed ? Dims{k, n} : Dims{n, k});
      const uint32_t add = b.constant(Type::fp32, {n}, bias), y = b.output(Type::fp32, {m, n});
      b.node(Kind::XNNFullyConnected,
             fb::CreateXNNFullyConnected(b.fbb, in, filter, add, y, transposed ? 1 : 0), 0);
      Floats held = w;
      if (type == Type::fp16) {
        for (float& v : held) v = static_cast<float>(aten::Half(v));
      }
      std::vector<double> expected;
      for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) {
          double sum = bias[j];
          for (size_t p = 0; p < k; ++p) {
            sum += static_cast<double>(x[i * k + p]) * held[transposed ? p * n + j : j * k + p];
          }
          expected.push_back(std::max(sum, 0.0));
        }
      }
      const auto out = floats.zeros({m, n});
      const Sizes sizes = transposed ? Sizes{k, n} : Sizes{n, k};
      const auto weights = type == Type::fp16 ? halves.make(sizes, {held.begin(), held.end()})
                                              : floats.make(sizes, {held.begin(), held.end()});
      ASSERT_EQ(Loaded(b).run({floats.make({m, k}, {x.begin(), x.end()}), weights, out}),
                Error::Ok);
      expect_near(elements(out), expected, 2 * k);
    }
  }
}

TEST(XnnpackMatmul, RepeatsBatchesOfOne) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2, 1, 2, 3}), w = b.input(Type::fp32, {4, 3, 2}),
                 y = b.output(Type::fp32, {2, 4, 2, 2});
  b.binary(Kind::XNNBatchMatrixMultiply, x, w, y);
  const Floats p = numbers(12), q = numbers(24, -1, 1, 4);
  std::vector<double> expected;
  for (size_t g = 0; g < 2; ++g) {
    for (size_t h = 0; h < 4; ++h) {
      for (size_t i = 0; i < 4; ++i) {
        double sum = 0;
        for (size_t c = 0; c < 3; ++c) {
          sum += static_cast<double>(p[g * 6 + i / 2 * 3 + c]) * q[h * 6 + c * 2 + i % 2];
        }
        expected.push_back(sum);
      }
    }
  }
  const auto out = floats.zeros({2, 4, 2, 2});
  ASSERT_EQ(Loaded(b).run({floats.make({2, 1, 2, 3}, {p.begin(), p.end()}),
                           floats.make({4, 3, 2}, {q.begin(), q.end()}), out}),
            Error::Ok);
  expect_near(elements(out), expected, 6);
}

/// A linear layer with dynamically quantised activations; its weights are whole numbers and its
/// scales powers of two, so that only the activations are rounded.
struct DynamicLayer {
  Type type;
  uint32_t k, n;
  std::vector<int> weights;  // [n, k]
  std::vector<uint8_t> stored;
  Quantisation q;

  DynamicLayer(Type type_, uint32_t k_, uint32_t n_) : type(type_), k(k_), n(n_) {
    const bool nibbles = type != Type::qcint8;
    const uint32_t row_bytes = nibbles ? (k + 1) / 2 : k;
    stored.resize(size_t{n} * row_bytes);
    const Floats random = numbers(size_t{n} * k, -8, 8);
    for (uint32_t j = 0; j < n; ++j) {
      for (uint32_t p = 0; p < k; ++p) {
        const int w = static_cast<int>(std::floor(random[j * k + p]));
        weights.push_back(w);
        uint8_t& byte = stored[j * row_bytes + (nibbles ? p / 2 : p)];
        byte = static_cast<uint8_t>(nibbles ? byte | (w + 8) << p % 2 * 4 : w);
      }
    }
    q.group_size = type == Type::qbint4 ? 32 : 0;
    const uint32_t count = q.group_size == 0 ? n : n * (k / 32);
    for (uint32_t i = 0; i < count; ++i) q.scales.push_back(i % 2 == 0 ? 0.25f : 0.5f);
  }
  double scale(uint32_t j, uint32_t p) const {
    return q.scales[q.group_size == 0 ? j : j * (k / 32) + p / 32];
  }
};

TEST(XnnpackMatmul, QuantisesEachRowByItsRange) {
  for (const Type type : {Type::qcint8, Type::qcint4, Type::qbint4}) {
    SCOPED_TRACE(fb::EnumNameXNNDatatype(type));
    const uint32_t m = 3;
    const DynamicLayer layer(type, type == Type::qbint4 ? 96 : 37, 6);
    PayloadBuilder b;
    const uint32_t x = b.input(Type::fp32, {m, layer.k}),
                   rows = b.inner(Type::qdint8, {m, layer.k}),
                   w = b.constant(type, {layer.n, layer.k}, layer.stored, layer.q),
                   y = b.output(Type::fp32, {m, layer.n});
    b.unary(Kind::XNNConvert, x, rows);
    b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w, kNoId, y));
    Floats in = numbers(size_t{m} * layer.k, -1, 3);
    for (uint32_t p = 0; p < layer.k; ++p) in[p] *= 100;  // the first row's range is its own
    const auto out = floats.zeros({static_cast<int>(m), static_cast<int>(layer.n)});
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    ASSERT_EQ(loaded.run({floats.make({static_cast<int>(m), static_cast<int>(layer.k)},
                                      {in.begin(), in.end()}),
                          out}),
              Error::Ok);
    for (uint32_t i = 0; i < m; ++i) {
      const float* row = in.data() + i * layer.k;
      const double low = std::min(0.0f, *std::min_element(row, row + layer.k));
      const double high = std::max(0.0f, *std::max_element(row, row + layer.k));
      const double step = (high - low) / 255;
      for (uint32_t j = 0; j < layer.n; ++j) {
        double sum = 0, bound = 0;
        for (uint32_t p = 0; p < layer.k; ++p) {
          const double weight = layer.weights[j * layer.k + p] * layer.scale(j, p);
          sum += row[p] * weight;
          bound += std::abs(weight) * step * 1.01;  // a step: of the value and of the zero point
        }
        EXPECT_NEAR(elements(out)[i * layer.n + j], sum, bound);
      }
    }
  }
}

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

TEST(XnnpackConvolution, ComputesEachKindOnQuantisedValues) {
  for (const Convolution& c : kConvolutions) {
    SCOPED_TRACE(fb::EnumNameXNodeUnion(c.kind));
    const Image out = c.out();
    const Dims filter = c.filter();
    const Quantisation x_q{0.02f, 7}, y_q{0.04f, -3};
    Quantisation w_q;
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
    Quantisation bias_q;
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

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
