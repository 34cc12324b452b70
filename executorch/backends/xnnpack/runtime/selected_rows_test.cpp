// Mixtures of experts against their definition in double. Weights of an expert that no row picked
// are NaN where the test says so: whoever read them would make a NaN of the sum.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/backends/xnnpack/runtime/selected_rows.h>

#include <cmath>

namespace executorch::backends::xnnpack::testing {
namespace {

constexpr uint32_t kRows = 7, kWidth = 5, kHidden = 6, kExperts = 3;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// total = start + sum over e of factor_e * (down_e (v * sigmoid(v)) + bias_e), v = up_e x
struct Mixture {
  PayloadBuilder b;
  uint32_t x = b.input(Type::fp32, {kRows, kWidth}), start = b.input(Type::fp32, {kRows, kWidth});
  uint32_t factors[kExperts] = {b.input(Type::fp32, {kRows, 1}), b.input(Type::fp32, {kRows, 1}),
                                b.input(Type::fp32, {kRows, 1})};
  Floats up[kExperts], down[kExperts], bias[kExperts];

  explicit Mixture(int nan_expert = -1) {
    for (uint32_t e = 0; e < kExperts; ++e) {
      up[e] = numbers(kHidden * kWidth, -1, 1, 3 + e);
      down[e] = numbers(kWidth * kHidden, -1, 1, 13 + e);
      bias[e] = numbers(kWidth, -1, 1, 23 + e);
      if (static_cast<int>(e) == nan_expert) std::fill(up[e].begin(), up[e].end(), kNan);
    }
  }

  uint32_t layer(uint32_t of, const Floats& weights, uint32_t n, uint32_t k, uint32_t add) {
    const uint32_t y = b.inner(Type::fp32, {kRows, n});
    const uint32_t w = b.constant(Type::fp32, {n, k}, weights);
    b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, of, w, add, y, 0));
    return y;
  }
  uint32_t expert(uint32_t e) {
    const uint32_t v = layer(x, up[e], kHidden, kWidth, kNoId),
                   gate = b.inner(Type::fp32, {kRows, kHidden}),
                   both = b.inner(Type::fp32, {kRows, kHidden});
    b.unary(Kind::XNNSigmoid, v, gate);
    b.binary(Kind::XNNMultiply, v, gate, both);
    return layer(both, down[e], kWidth, kHidden, b.constant(Type::fp32, {kWidth}, bias[e]));
  }
  void build() {
    uint32_t total = start;
    for (uint32_t e = 0; e < kExperts; ++e) {
      const uint32_t y = expert(e), term = b.inner(Type::fp32, {kRows, kWidth}),
                     sum = e + 1 == kExperts ? b.output(Type::fp32, {kRows, kWidth})
                                             : b.inner(Type::fp32, {kRows, kWidth});
      b.binary(Kind::XNNMultiply, e == 1 ? factors[e] : y, e == 1 ? y : factors[e], term);
      b.binary(Kind::XNNAdd, total, term, sum);
      total = sum;
    }
  }
  std::vector<double> expected(size_t n, const Floats& in, const Floats& begin,
                               const std::vector<Floats>& by) const {
    std::vector<double> out(begin.begin(), begin.begin() + static_cast<ptrdiff_t>(n * kWidth));
    for (uint32_t e = 0; e < kExperts; ++e) {
      for (size_t i = 0; i < n; ++i) {
        if (by[e][i] == 0) continue;
        double hidden[kHidden];
        for (size_t h = 0; h < kHidden; ++h) {
          double v = 0;
          for (size_t p = 0; p < kWidth; ++p)
            v += double{in[i * kWidth + p]} * up[e][h * kWidth + p];
          hidden[h] = v / (1 + std::exp(-v));
        }
        for (size_t j = 0; j < kWidth; ++j) {
          double y = bias[e][j];
          for (size_t h = 0; h < kHidden; ++h) y += hidden[h] * down[e][j * kHidden + h];
          out[i * kWidth + j] += by[e][i] * y;
        }
      }
    }
    return out;
  }
};

/// What a mixture gives with these factors, and what it should give.
void check(Mixture& mixture, Loaded& loaded, const std::vector<Floats>& by) {
  const auto n = static_cast<int32_t>(by[0].size());
  const auto count = static_cast<size_t>(n) * kWidth;
  const Floats x = numbers(count), start = numbers(count, -1, 1, 9);
  const auto out = floats.zeros({n, static_cast<int32_t>(kWidth)});
  const Sizes sizes = {n, static_cast<int32_t>(kWidth)};
  ASSERT_EQ(
      loaded.run({floats.make(sizes, x), floats.make(sizes, start), floats.make({n, 1}, by[0]),
                  floats.make({n, 1}, by[1]), floats.make({n, 1}, by[2]), out}),
      Error::Ok);
  expect_near(elements(out), mixture.expected(static_cast<size_t>(n), x, start, by), 40);
}

TEST(XnnpackSelectedRows, ComputeTheExpertsThatRowsPicked) {
  Mixture mixture;
  mixture.build();
  Loaded loaded(mixture.b);
  ASSERT_EQ(loaded.error, Error::Ok);
  const Floats none(kRows, 0), all(kRows, 0.5f);
  check(mixture, loaded, {all, all, all});
  check(mixture, loaded, {none, none, none});
  check(mixture, loaded, {{1, 0, 0, 2, 0, 0, 3}, {0, 1, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, -1}});
  check(mixture, loaded, {{0, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 0}, all});
  check(mixture, loaded, {{1}, {0}, {-2}});  // fewer rows than the payload says
  check(mixture, loaded, {{0, -0.0f}, {0, 1}, {0, 0}});
  check(mixture, loaded, {{}, {}, {}});
  check(mixture, loaded, {all, none, {0, 0, 0, 0, 1, 1, 0}});
}

TEST(XnnpackSelectedRows, ReadNoWeightsOfOthers) {
  for (int e = 0; e < static_cast<int>(kExperts); ++e) {
    Mixture mixture(e);
    mixture.build();
    Loaded loaded(mixture.b);
    std::vector<Floats> by(kExperts, {1, 0, 0, 2, 0, 0, 3});
    std::fill(by[static_cast<size_t>(e)].begin(), by[static_cast<size_t>(e)].end(), 0.0f);
    check(mixture, loaded, by);
  }
}

TEST(XnnpackSelectedRows, LeaveOtherRowsZeroWhateverTheyWouldBe) {
  Mixture mixture(1);
  mixture.build();
  Loaded loaded(mixture.b);
  const Floats x = numbers(kRows * kWidth), start(kRows * kWidth, 0);
  const Floats one = {0, 1, 0, 0, 0, 0, 0}, none(kRows, 0);
  const auto out = floats.zeros({kRows, kWidth});
  const auto column = [&](const Floats& list) { return floats.make({kRows, 1}, list); };
  ASSERT_EQ(loaded.run({floats.make({kRows, kWidth}, x), floats.make({kRows, kWidth}, start),
                        column(none), column(one), column(none), out}),
            Error::Ok);
  const Floats found = elements(out);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i / kWidth == 1) << i;
}

/// The groups of a payload, and its nodes' kinds in their new order.
std::vector<RowGroup> groups_of(PayloadBuilder& b, std::vector<Kind>* kinds = nullptr) {
  const std::vector<uint8_t> bytes = b.build();
  runtime::runtime_init();
  auto graph = read_graph(bytes.data(), bytes.size(), nullptr);
  EXPECT_TRUE(graph.ok());
  if (!graph.ok()) return {};
  std::vector<RowGroup> groups = find_row_groups(**graph);
  for (const Node& node : (*graph)->nodes) {
    if (kinds != nullptr) kinds->push_back(node.kind);
  }
  return groups;
}

TEST(XnnpackSelectedRows, MoveTheNodesOfAGroupTogether) {
  Mixture m;
  const uint32_t first = m.expert(0), second = m.expert(1),
                 one = m.b.inner(Type::fp32, {kRows, kWidth}),
                 two = m.b.inner(Type::fp32, {kRows, kWidth}),
                 half = m.b.inner(Type::fp32, {kRows, 1}),
                 sum = m.b.output(Type::fp32, {kRows, kWidth});
  m.b.unary(Kind::XNNSigmoid, m.factors[0], half);
  m.b.binary(Kind::XNNMultiply, second, m.factors[1], two);
  m.b.binary(Kind::XNNMultiply, first, half, one);
  m.b.binary(Kind::XNNAdd, one, two, sum);
  std::vector<Kind> kinds;
  const auto groups = groups_of(m.b, &kinds);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].first, 1u);
  EXPECT_EQ(groups[0].multiply, 5u);
  EXPECT_EQ(groups[1].first, 6u);
  EXPECT_EQ(groups[1].multiply, 10u);
  const std::vector<Kind> chain = {Kind::XNNFullyConnected, Kind::XNNSigmoid, Kind::XNNMultiply,
                                   Kind::XNNFullyConnected, Kind::XNNMultiply};
  std::vector<Kind> expected = {Kind::XNNSigmoid};
  for (int i = 0; i < 2; ++i) expected.insert(expected.end(), chain.begin(), chain.end());
  expected.push_back(Kind::XNNAdd);
  EXPECT_EQ(kinds, expected);
}

TEST(XnnpackSelectedRows, AreOnlyOfProductsThatAreAdded) {
  {
    Mixture m;  // the product is a result
    m.b.binary(Kind::XNNMultiply, m.expert(0), m.factors[0],
               m.b.output(Type::fp32, {kRows, kWidth}));
    EXPECT_TRUE(groups_of(m.b).empty());
  }
  {
    Mixture m;  // zero is no term
    const uint32_t y = m.expert(0), term = m.b.inner(Type::fp32, {kRows, kWidth});
    m.b.binary(Kind::XNNMultiply, y, m.factors[0], term);
    m.b.unary(Kind::XNNExp, term, m.b.output(Type::fp32, {kRows, kWidth}));
    EXPECT_TRUE(groups_of(m.b).empty());
  }
  {
    Mixture m;  // held within bounds that zero is not in
    const uint32_t y = m.expert(0), term = m.b.inner(Type::fp32, {kRows, kWidth});
    m.b.binary(Kind::XNNMultiply, y, m.factors[0], term, 1, 2);
    m.b.binary(Kind::XNNAdd, m.start, term, m.b.output(Type::fp32, {kRows, kWidth}));
    EXPECT_TRUE(groups_of(m.b).empty());
  }
  {
    Mixture m;  // no layer
    const uint32_t y = m.b.inner(Type::fp32, {kRows, kWidth}),
                   term = m.b.inner(Type::fp32, {kRows, kWidth});
    m.b.unary(Kind::XNNExp, m.x, y);
    m.b.binary(Kind::XNNMultiply, y, m.factors[0], term);
    m.b.binary(Kind::XNNAdd, m.start, term, m.b.output(Type::fp32, {kRows, kWidth}));
    EXPECT_TRUE(groups_of(m.b).empty());
  }
}

TEST(XnnpackSelectedRows, LeaveOutWhatOthersRead) {
  Mixture m;
  const uint32_t v = m.layer(m.x, m.up[0], kHidden, kWidth, kNoId),
                 y = m.layer(v, m.down[0], kWidth, kHidden, kNoId),
                 term = m.b.inner(Type::fp32, {kRows, kWidth});
  m.b.binary(Kind::XNNMultiply, y, m.factors[0], term);
  m.b.binary(Kind::XNNAdd, m.start, term, m.b.output(Type::fp32, {kRows, kWidth}));
  m.b.unary(Kind::XNNExp, v, m.b.output(Type::fp32, {kRows, kHidden}));
  const auto groups = groups_of(m.b);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].multiply - groups[0].first, 1u);
  EXPECT_EQ(groups[0].sources, (std::vector<uint32_t>{m.factors[0], v}));
}

TEST(XnnpackSelectedRows, OfAConstantThatDiffersByRowAreNone) {
  Mixture m;
  const uint32_t y = m.layer(m.x, m.up[0], kHidden, kWidth, kNoId),
                 moved = m.b.inner(Type::fp32, {kRows, kHidden}),
                 by = m.b.constant(Type::fp32, {kRows, kHidden}, numbers(kRows * kHidden)),
                 term = m.b.inner(Type::fp32, {kRows, kHidden});
  m.b.binary(Kind::XNNAdd, y, by, moved);
  m.b.binary(Kind::XNNMultiply, moved, m.factors[0], term);
  m.b.binary(Kind::XNNAdd, term, term, m.b.output(Type::fp32, {kRows, kHidden}));
  EXPECT_TRUE(groups_of(m.b).empty());
}

/// Rows of integers have a scale and a zero point each, which go with them.
TEST(XnnpackSelectedRows, AreTheSameOfIntegers) {
  constexpr uint32_t n = 6, k = 8, width = 4;
  const Quantization q{.scales = {0.5f, 0.25f, 1, 2}};
  std::vector<int8_t> weights;
  for (const float v : numbers(width * k, -100, 100, 5)) {
    weights.push_back(static_cast<int8_t>(std::floor(v)));
  }
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {n, k}), start = b.input(Type::fp32, {n, width}),
                 factor = b.input(Type::fp32, {n, 1}), rows = b.inner(Type::qdint8, {n, k}),
                 w = b.constant(Type::qcint8, {width, k}, weights, q),
                 y = b.inner(Type::fp32, {n, width}), term = b.inner(Type::fp32, {n, width}),
                 sum = b.output(Type::fp32, {n, width}), other = b.output(Type::fp32, {n, width});
  b.unary(Kind::XNNConvert, x, rows);
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w, kNoId, y, 0));
  b.binary(Kind::XNNMultiply, y, factor, term);
  b.binary(Kind::XNNAdd, start, term, sum);
  // Who else reads the integers makes them a source.
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w, kNoId, other, 0));
  Loaded loaded(b);
  ASSERT_EQ(loaded.error, Error::Ok);
  Floats in = numbers(n * k);
  for (uint32_t p = 0; p < k; ++p) in[2 * k + p] *= 50;  // the range of a row is its own
  for (const Floats& by : {Floats{0, 0, 1, 0, 0, 3}, Floats{1, 1, 1, 1, 1, 1}, Floats(n, 0)}) {
    const auto out = floats.zeros({n, width}), whole = floats.zeros({n, width});
    ASSERT_EQ(loaded.run({floats.make({n, k}, in), floats.zeros({n, width}),
                          floats.make({n, 1}, by), out, whole}),
              Error::Ok);
    for (uint32_t i = 0; i < n * width; ++i) {
      EXPECT_EQ(elements(out)[i], by[i / width] * elements(whole)[i]) << i;
    }
  }
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
