#include <executorch/cpu/nn/recurrent.h>
#include <executorch/cpu/nn/testing.h>

#include <cmath>

namespace executorch::cpu {
namespace {

using Cell = Recurrent::Cell;

ET_ON_EACH_TARGET(Recurrent_);

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// A layer with its operands. Weights lie as [gates * units, units], or transposed.
struct Layer {
  Layer(Cell cell, int64_t steps, int64_t batch, int64_t units, bool transposed, bool has_bias) {
    r.cell = cell, r.steps = steps, r.batch = batch, r.units = units;
    const int64_t width = Recurrent::gates(cell) * units;
    const auto make = [](int64_t n, unsigned seed) {
      return normal_floats(static_cast<size_t>(n), seed);
    };
    weights = make(width * units, 1);
    bias = make(width, 2);
    shares = make(steps * batch * width, 3);
    h = make(batch * units, 4);
    c = make(batch * units, 5);
    out.assign(static_cast<size_t>(steps * batch * units), 7.0f);
    r.unit_stride = transposed ? 1 : units;
    r.k_stride = transposed ? width : 1;
    r.weights = weights.data(), r.bias = has_bias ? bias.data() : nullptr;
    r.shares = shares.data(), r.h = h.data(), r.c = c.data(), r.out = out.data();
  }

  /// What the layer gives, computed in double from its present operands.
  void run_reference() {
    const int64_t units = r.units, gates = Recurrent::gates(r.cell), width = gates * units;
    std::vector<double> state(h.begin(), h.end()), cells(c.begin(), c.end());
    for (int64_t t = 0; t < r.steps; ++t) {
      const std::vector<double> before = state;
      for (int64_t at = 0; at < r.batch * units; ++at) {
        const int64_t row = at / units, unit = at % units;
        double sum[4], share[4];
        for (int64_t g = 0; g < gates; ++g) {
          sum[g] = r.bias == nullptr ? 0 : bias[static_cast<size_t>(g * units + unit)];
          for (int64_t k = 0; k < units; ++k) {
            sum[g] += static_cast<double>(
                          r.weights[(g * units + unit) * r.unit_stride + k * r.k_stride]) *
                      before[static_cast<size_t>(row * units + k)];
          }
          share[g] = shares[static_cast<size_t>((t * r.batch + row) * width + g * units + unit)];
        }
        const auto i = static_cast<size_t>(at);
        state[i] = next(sum, share, before[i], cells[i]);
        expected.push_back(state[i]);
      }
    }
    last_h = state, last_c = cells;
  }

  double next(const double (&sum)[4], const double (&share)[4], double old, double& cell) const {
    if (r.cell == Cell::Lstm) {
      cell = sigmoid(sum[1] + share[1]) * cell +
             sigmoid(sum[0] + share[0]) * std::tanh(sum[2] + share[2]);
      return sigmoid(sum[3] + share[3]) * std::tanh(cell);
    }
    if (r.cell == Cell::Gru) {
      const double z = sigmoid(sum[1] + share[1]);
      const double n = std::tanh(share[2] + sigmoid(sum[0] + share[0]) * sum[2]);
      return (old - n) * z + n;
    }
    const double x = sum[0] + share[0];
    return r.cell == Cell::Tanh ? std::tanh(x) : std::max(x, 0.0);
  }

  Recurrent r;
  std::vector<float> weights, bias, shares, h, c, out;
  std::vector<double> expected, last_h, last_c;
};

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << i;
  }
}

TEST_P(Recurrent_, AgreesWithTheFormulas) {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu}) {
    for (int64_t units : {1, 5, 16, 33, 70}) {
      for (int64_t batch : {1, 2, 3, 7}) {
        const bool odd = units % 2 == 1;
        SCOPED_TRACE(testing::Message() << static_cast<int>(cell) << " " << units << " " << batch);
        // A step of relu multiplies errors by the size of the weights.
        Layer layer(cell, cell == Cell::Relu ? 2 : 4, batch, units, odd, batch != 2);
        for (float& w : layer.weights) w /= std::sqrt(static_cast<float>(units));
        layer.run_reference();
        HeapScratch scratch;
        ASSERT_TRUE(layer.r.run(scratch));
        expect_near(layer.out, layer.expected);
        expect_near(layer.h, layer.last_h);
        if (cell == Cell::Lstm) expect_near(layer.c, layer.last_c);
      }
    }
  }
}

TEST_P(Recurrent_, IsTheSameForAnyNumberOfThreads) {
  Layer layer(Cell::Lstm, 5, 2, 200, false, true);
  const std::vector<float> h = layer.h, c = layer.c;
  HeapScratch scratch;
  ASSERT_TRUE(layer.r.run(scratch));
  expect_same_on_any_threads(layer.out, [&] {
    std::copy(h.begin(), h.end(), layer.h.begin());
    std::copy(c.begin(), c.end(), layer.c.begin());
    ASSERT_TRUE(layer.r.run(scratch));
  });
}

TEST_P(Recurrent_, IsRefusedMemoryBeforeAnythingIsWritten) {
  Layer layer(Cell::Gru, 3, 2, 9, false, true);
  const std::vector<float> h = layer.h;
  expect_refusal(layer.r);
  EXPECT_EQ(layer.h, h);
  for (float x : layer.out) ASSERT_EQ(x, 7.0f);
}

TEST_P(Recurrent_, KeepsNaN) {
  for (Cell cell : {Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu}) {
    SCOPED_TRACE(static_cast<int>(cell));
    Layer layer(cell, 3, 1, 9, false, true);
    std::fill(layer.shares.begin(), layer.shares.begin() + Recurrent::gates(cell) * 9, NAN);
    HeapScratch scratch;
    ASSERT_TRUE(layer.r.run(scratch));
    for (float x : layer.out) ASSERT_TRUE(std::isnan(x));
  }
}

TEST_P(Recurrent_, WritesNothingWithoutSteps) {
  Layer layer(Cell::Lstm, 0, 2, 9, false, true);
  const std::vector<float> h = layer.h;
  HeapScratch scratch;
  EXPECT_TRUE(layer.r.run(scratch));
  EXPECT_EQ(layer.h, h);
}

}  // namespace
}  // namespace executorch::cpu
