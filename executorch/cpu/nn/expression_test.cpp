#include <executorch/cpu/nn/expression.h>
#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

using Op = Expression::Op;

// (x * y + 0.5) / w over [rows, n], y of one row, w of one column, x and out strided.
struct Case {
  int64_t rows, n, stride;

  std::vector<float> run() const {
    std::vector<float> x(static_cast<size_t>(rows * n * stride)), y(static_cast<size_t>(n)),
        w(static_cast<size_t>(rows)), out(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::cos(static_cast<float>(i));
    for (size_t i = 0; i < w.size(); ++i) w[i] = 2.0f + static_cast<float>(i % 3);
    const Expression::Step steps[] = {{.op = Op::Multiply, .to = 3, .a = 0, .b = 1},
                                      {.op = Op::Linear, .to = 3, .a = 3, .shift = 0.5f},
                                      {.op = Op::Divide, .to = 4, .a = 3, .b = 2}};
    Expression e;
    e.n_inputs = 3;
    e.inputs[0] = x.data();
    e.inputs[1] = y.data();
    e.inputs[2] = w.data();
    e.out = out.data();
    e.steps = steps;
    e.n_steps = 3;
    e.n_dims = 2;
    e.dims[0] = {n, {stride, 1, 0}, stride};
    e.dims[1] = {rows, {n * stride, 0, 1}, n * stride};
    e.run();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>((r * n + i) * stride);
        const float product = x[at] * y[static_cast<size_t>(i)];
        const float expected = (product + 0.5f) / w[static_cast<size_t>(r)];
        // A fused multiplication and addition may round once less.
        EXPECT_NEAR(out[at], expected, 2 * std::numeric_limits<float>::epsilon())
            << r << ", " << i << " of " << rows << " x " << n;
      }
    }
    return out;
  }
};

ET_ON_EACH_TARGET(Expression_);

TEST_P(Expression_, WalksRowsTilesAndTails) {
  for (const int64_t n : {1, 15, 16, 17, 511, 512, 513, 1500}) {
    for (const int64_t rows : {1, 3, 40}) Case{rows, n, 1}.run();
  }
}

TEST_P(Expression_, JoinsVeryShortRows) {
  for (const int64_t n : {1, 2, 3, 7}) {
    for (const int64_t rows : {2, 255, 256, 700}) {
      for (const int64_t stride : {1, 3}) Case{rows, n, stride}.run();
    }
  }
}

TEST_P(Expression_, JoinsShortRowsOfPlanes) {
  // x is the middle of padded planes; y is one row of each plane, or dense.
  constexpr int64_t planes = 3, pad = 2;
  for (const int64_t n : {1, 5, 16, 32, 33, 250, 300}) {
    for (const int64_t rows : {1, 7, 40}) {
      for (const bool is_dense : {false, true}) {
        SCOPED_TRACE(testing::Message() << rows << " x " << n << " dense " << is_dense);
        const int64_t x_row = n + 2 * pad, x_plane = x_row * rows, plane = rows * n;
        std::vector<float> x(static_cast<size_t>(planes * x_plane));
        std::vector<float> y(static_cast<size_t>(planes * plane)), out(y.size() + 1, 7.0f);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1001);
        for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 13);
        const Expression::Step step = {.op = Op::Multiply, .to = 2, .a = 0, .b = 1};
        Expression e;
        e.n_inputs = 2;
        e.inputs[0] = x.data() + pad;
        e.inputs[1] = y.data();
        e.out = out.data();
        e.steps = &step;
        e.n_steps = 1;
        e.n_dims = 3;
        e.dims[0] = {n, {1, 1}, 1};
        e.dims[1] = {rows, {x_row, is_dense ? n : 0}, n};
        e.dims[2] = {planes, {x_plane, plane}, plane};
        e.run();
        for (int64_t p = 0; p < planes; ++p) {
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = 0; i < n; ++i) {
              const auto at_x = static_cast<size_t>(p * x_plane + r * x_row + pad + i);
              const auto at_y = static_cast<size_t>(p * plane + (is_dense ? r * n : 0) + i);
              ASSERT_EQ(out[static_cast<size_t>(p * plane + r * n + i)], x[at_x] * y[at_y]);
            }
          }
        }
        EXPECT_EQ(out.back(), 7.0f);
      }
    }
  }
}

TEST_P(Expression_, StoresShortRowsApart) {
  constexpr int64_t rows = 60, n = 12, apart = 20;
  std::vector<float> x(rows * n), out(rows * apart, 7.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Expression::Step step = {.op = Op::Linear, .to = 1, .scale = 2.0f};
  Expression e;
  e.n_inputs = 1;
  e.inputs[0] = x.data();
  e.out = out.data();
  e.steps = &step;
  e.n_steps = 1;
  e.n_dims = 2;
  e.dims[0] = {n, {1}, 1};
  e.dims[1] = {rows, {n}, apart};
  e.run();
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i % apart < n ? 2 * x[i / apart * n + i % apart] : 7.0f) << i;
  }
}

TEST_P(Expression_, TakesStrides) {
  Case{200, 7, 2}.run();
  Case{5, 700, 3}.run();
}

TEST_P(Expression_, GivesTheSameForAnyNumberOfThreads) {
  const Case c{64, 2000, 1};
  const auto many = c.run();
  const UsePool alone(nullptr);
  EXPECT_EQ(many, c.run());
}

TEST_P(Expression_, MaximumAndMinimumKeepNaN) {
  const float nan = std::nanf("");
  const float a[] = {1, nan, 2, nan}, b[] = {2, 1, nan, nan};
  for (const Op op : {Op::Maximum, Op::Minimum}) {
    float out[4];
    const Expression::Step step = {.op = op, .to = 2, .a = 0, .b = 1};
    Expression e;
    e.n_inputs = 2;
    e.inputs[0] = a;
    e.inputs[1] = b;
    e.out = out;
    e.steps = &step;
    e.n_steps = 1;
    e.n_dims = 1;
    e.dims[0] = {4, {1, 1}, 1};
    e.run();
    EXPECT_EQ(out[0], op == Op::Maximum ? 2 : 1);
    for (int i = 1; i < 4; ++i) EXPECT_TRUE(std::isnan(out[i])) << i;
  }
}

TEST_P(Expression_, ComparesAndSelects) {
  using Comparison = Expression::Comparison;
  constexpr int64_t n = 37;
  std::vector<float> x(n), y(n), out(n);
  std::vector<uint8_t> mask(n);
  for (size_t i = 0; i < n; ++i) {
    x[i] = i == 5 ? NAN : static_cast<float>(i % 7);
    y[i] = static_cast<float>(i % 4);
    mask[i] = i % 3 == 0;
  }
  const auto holds = [](Comparison c, float a, float b) {
    return c == Comparison::Equal       ? a == b
           : c == Comparison::NotEqual  ? a != b
           : c == Comparison::Less      ? a < b
           : c == Comparison::LessEqual ? a <= b
           : c == Comparison::Greater   ? a > b
                                        : a >= b;
  };
  for (int kind = 0; kind < 6; ++kind) {
    for (const Op op : {Op::Compare, Op::CompareTo}) {
      const auto comparison = static_cast<Comparison>(kind);
      // mask where the comparison holds, else y
      const Expression::Step steps[] = {
          {.op = op, .to = 3, .a = 0, .b = 1, .scale = 2, .comparison = comparison},
          {.op = Op::Select, .to = 4, .a = 3, .b = 2, .c = 1}};
      Expression e;
      e.n_inputs = 3;
      e.inputs[0] = x.data();
      e.inputs[1] = y.data();
      e.inputs[2] = mask.data();
      e.is_bool[2] = true;
      e.out = out.data();
      e.steps = steps;
      e.n_steps = 2;
      e.n_dims = 1;
      e.dims[0] = {n, {1, 1, 1}, 1};
      e.run();
      for (size_t i = 0; i < n; ++i) {
        const bool is_true = holds(comparison, x[i], op == Op::Compare ? y[i] : 2);
        EXPECT_EQ(out[i], is_true ? static_cast<float>(mask[i]) : y[i]) << kind << ", " << i;
      }
    }
  }
}

// What a step gives for one element.
float value_of(const Expression::Step& s, const float* r) {
  using Comparison = Expression::Comparison;
  const float a = r[s.a], b = s.op == Op::CompareTo ? s.scale : r[s.b];
  switch (s.op) {
    case Op::Add:
      return a + b;
    case Op::Subtract:
      return a - b;
    case Op::Multiply:
      return a * b;
    case Op::Divide:
      return a / b;
    case Op::Maximum:
      return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b;  // b of two zeros
    case Op::Minimum:
      return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b;
    case Op::Linear:
      return s.scale * a + s.shift;
    case Op::Quotient:
      return a / s.scale;
    case Op::Over:
      return s.scale / a;
    case Op::Abs:
      return std::fabs(a);
    case Op::Sign:
      return static_cast<float>((a > 0) - (a < 0));
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Round:
      return std::nearbyint(a);
    case Op::RectifyLeaky:
      return a > 0 ? a : a * s.scale;
    case Op::Act:  // Clamp
      return std::isnan(a) ? a : std::min(std::max(a, s.act.low), s.act.high);
    case Op::Apply:  // Sqrt
      return std::sqrt(a);
    case Op::Atan2:
      return std::atan2(a, b);
    case Op::Select:
      return a != 0 ? b : r[s.c];
    case Op::Compare:
    case Op::CompareTo:
      break;
  }
  return s.comparison == Comparison::Equal       ? a == b
         : s.comparison == Comparison::NotEqual  ? a != b
         : s.comparison == Comparison::Less      ? a < b
         : s.comparison == Comparison::LessEqual ? a <= b
         : s.comparison == Comparison::Greater   ? a > b
                                                 : a >= b;
}

// Random steps; x is [rows, n] with a NaN and an infinity, y one row, z one column, and w one
// number. Numbers are multiples of a half, so that results do not depend on rounding.
void run_random_steps(std::mt19937& rng, int64_t rows, int64_t n) {
  const auto random = [&](int end) { return static_cast<int>(rng() % static_cast<unsigned>(end)); };
  constexpr int kInputs = 4, kRegisters = 9;
  std::vector<Expression::Step> steps(static_cast<size_t>(1 + random(12)));
  int known = kInputs;
  for (auto& s : steps) {
    s.op = static_cast<Op>(random(static_cast<int>(Op::Select) + 1));
    s.a = static_cast<uint8_t>(random(known));
    s.b = static_cast<uint8_t>(random(2) == 0 ? known - 1 : random(known));
    s.c = static_cast<uint8_t>(random(known));
    if (random(2) == 0) s.a = static_cast<uint8_t>(known - 1);
    s.scale = static_cast<float>(random(3) - 1) / 2;
    s.shift = static_cast<float>(random(5) - 2);
    s.function = Function::Sqrt;
    s.comparison = static_cast<Expression::Comparison>(random(6));
    s.act = {Activation::Kind::Clamp, -1.5f, 3};
    s.to = static_cast<uint8_t>(known < kRegisters ? known++ : kInputs + random(5));
  }
  const auto size = static_cast<size_t>(rows * n);
  std::vector<float> in[kInputs] = {std::vector<float>(size),
                                    std::vector<float>(static_cast<size_t>(n)),
                                    std::vector<float>(static_cast<size_t>(rows)),
                                    {2.5f}};
  for (auto& values : in) {
    for (float& v : values) v = static_cast<float>(random(9) - 4) / 2;
  }
  in[0][static_cast<size_t>(random(static_cast<int>(size)))] = NAN;
  in[0][static_cast<size_t>(random(static_cast<int>(size)))] = INFINITY;
  std::vector<float> out(size);
  Expression e;
  e.n_inputs = kInputs;
  for (int w = 0; w < kInputs; ++w) e.inputs[w] = in[w].data();
  e.out = out.data();
  e.steps = steps.data();
  e.n_steps = static_cast<int>(steps.size());
  e.n_dims = 2;
  e.dims[0] = {n, {1, 1, 0, 0}, 1};
  e.dims[1] = {rows, {n, 0, 1, 0}, n};
  e.run();
  for (size_t i = 0; i < size; ++i) {
    float r[kRegisters] = {in[0][i], in[1][i % static_cast<size_t>(n)],
                           in[2][i / static_cast<size_t>(n)], in[3][0]};
    for (const auto& s : steps) r[s.to] = value_of(s, r);
    const float expected = r[steps.back().to];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(out[i])) << i << ": " << out[i];
    } else if (std::isinf(expected)) {
      ASSERT_EQ(out[i], expected) << i;
    } else {
      ASSERT_NEAR(out[i], expected, 1e-6f * std::max(1.0f, std::fabs(expected))) << i;
    }
  }
}

TEST_P(Expression_, RunsRandomSteps) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(seed);
    constexpr int64_t kShapes[][2] = {{1, 700}, {3, 513}, {7, 60}, {200, 3}, {1, 1}};
    const auto& shape = kShapes[seed % std::size(kShapes)];
    run_random_steps(rng, shape[0], shape[1]);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Expression_, TakesEmptySizes) {
  const Expression::Step step = {.op = Op::Abs, .to = 1, .a = 0};
  for (const int empty : {0, 1}) {
    Expression e;
    e.n_inputs = 1;
    e.steps = &step;
    e.n_steps = 1;
    e.n_dims = 2;
    e.dims[empty] = {0, {1}, 1};
    e.dims[1 - empty] = {std::numeric_limits<int64_t>::max(), {1}, 1};
    e.run();
  }
}

}  // namespace
}  // namespace executorch::cpu
