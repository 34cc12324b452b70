// Functions of each element, or of each row, against their definition in double.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>

#include <cmath>
#include <functional>

namespace executorch::backends::xnnpack::testing {
namespace {

struct Function {
  Kind kind;
  std::function<double(double)> apply;
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
    for (const float v : x) expected.push_back(f.apply(v));
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

TEST(XnnpackUnary, HalvesAndQuantizedValuesAreRoundedOnce) {
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

TEST(XnnpackBinary, AddsAndMultipliesQuantizedValues) {
  const Quantization a{0.1f, 3}, c{0.05f, -7}, result{0.2f, 5};
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

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
