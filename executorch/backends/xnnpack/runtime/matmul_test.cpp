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

/// A linear layer with dynamically quantized activations; its weights are whole numbers and its
/// scales powers of two, so that only the activations are rounded.
struct DynamicLayer {
  Type type;
  uint32_t k, n;
  std::vector<int> weights;  // [n, k]
  std::vector<uint8_t> stored;
  Quantization q;

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

TEST(XnnpackMatmul, QuantizesEachRowByItsRange) {
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

TEST(XnnpackMatmul, MultipliesDynamicRowsByBatchesOfConstants) {
  // Whole numbers up to 127 and 0, so that rows are quantized without an error.
  for (const bool transposed : {false, true}) {
    const size_t m = 5, k = 6, n = 3;
    const Quantization q{.scales = {0.5f, 0.25f, 2, 0.125f, 1, 4},
                         .channel_dim = transposed ? 1 : 2};
    std::vector<int8_t> weights;
    for (const float v : numbers(2 * k * n, -128, 128, 3)) {
      weights.push_back(static_cast<int8_t>(std::floor(v)));
    }
    Floats x;
    for (const float v : numbers(2 * m * k, -128, 127)) x.push_back(std::floor(v));
    for (size_t i = 0; i < 2 * m; ++i) {
      x[i * k] = -128;
      x[i * k + 1] = 127;
    }
    std::vector<double> expected;
    for (size_t b = 0; b < 2; ++b) {
      for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t p = 0; p < k; ++p) {
            const size_t w = b * k * n + (transposed ? j * k + p : p * n + j);
            sum += static_cast<double>(x[(b * m + i) * k + p]) * weights[w] * q.scales[b * n + j];
          }
          expected.push_back(sum);
        }
      }
    }
    PayloadBuilder b;
    const Dims matrices = transposed ? Dims{2, n, k} : Dims{2, k, n};
    const uint32_t in = b.input(Type::fp32, {2, m, k}), rows = b.inner(Type::qdint8, {2, m, k}),
                   w = b.constant(Type::qcint8, matrices, weights, q),
                   y = b.output(Type::fp32, {2, m, n});
    b.unary(Kind::XNNConvert, in, rows);
    b.node(Kind::XNNBatchMatrixMultiply,
           fb::Create_XNNNode2x1(b.fbb, rows, w, y, transposed ? 1 : 0));
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    for (int run = 0; run < 2; ++run) {  // the second with what the first has kept
      const auto out = floats.zeros({2, m, n});
      ASSERT_EQ(loaded.run({floats.make({2, m, k}, {x.begin(), x.end()}), out}), Error::Ok);
      expect_near(elements(out), expected, 2 * k);
    }
  }
}

TEST(XnnpackMatmul, MultipliesRowsOfEitherSign) {
  const uint32_t m = 9, k = 21, n = 4;
  for (const Type type : {Type::qint8, Type::quint8}) {
    SCOPED_TRACE(fb::EnumNameXNNDatatype(type));
    const int32_t base = type == Type::quint8 ? 128 : 0;
    const Quantization x_q{0.02f, 7 + base}, y_q{0.11f, base - 9};
    const Quantization w_q{.scales = {0.01f, 0.02f, 0.005f, 0.03f}};
    std::vector<int8_t> x, w;
    for (const float v : numbers(m * k, -128, 128)) x.push_back(static_cast<int8_t>(std::floor(v)));
    for (const float v : numbers(n * k, -128, 128, 3)) {
      w.push_back(static_cast<int8_t>(std::floor(v)));
    }
    PayloadBuilder b;
    const uint32_t in = b.input(type, {m, k}, x_q),
                   weights = b.constant(Type::qcint8, {n, k}, w, w_q),
                   y = b.output(type, {m, n}, y_q);
    b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, in, weights, kNoId, y));
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    std::vector<int32_t> found;
    if (type == Type::qint8) {
      Tensors<ScalarType::Char> bytes;
      const auto out = bytes.zeros({m, n});
      ASSERT_EQ(loaded.run({bytes.make({m, k}, x), out}), Error::Ok);
      for (const int8_t v : elements<int8_t>(out)) found.push_back(v);
    } else {
      Tensors<ScalarType::Byte> bytes;
      const auto out = bytes.zeros({m, n});
      std::vector<uint8_t> shifted;
      for (const int8_t v : x) shifted.push_back(static_cast<uint8_t>(v + 128));
      ASSERT_EQ(loaded.run({bytes.make({m, k}, shifted), out}), Error::Ok);
      for (const uint8_t v : elements<uint8_t>(out)) found.push_back(v);
    }
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t j = 0; j < n; ++j) {
        int32_t sum = 0;
        for (uint32_t p = 0; p < k; ++p) sum += (x[i * k + p] - 7) * w[j * k + p];
        const float real = static_cast<float>(sum) * (0.02f * w_q.scales[j] / 0.11f);
        const float held = std::min(std::max(std::nearbyint(real) - 9.0f, -128.0f), 127.0f);
        EXPECT_EQ(found[i * n + j] - base, static_cast<int32_t>(held)) << i << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
