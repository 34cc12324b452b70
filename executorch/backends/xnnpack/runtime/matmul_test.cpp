// Matrix products against their definition in double.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>

#include <cmath>

namespace executorch::backends::xnnpack::testing {
namespace {

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

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
