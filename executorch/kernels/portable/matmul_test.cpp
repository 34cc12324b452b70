#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>
#include <limits>
#include <vector>

using executorch::aten::BFloat16;
using namespace torch::executor::native;

namespace {

// Small integers, so that float sums are exact in any order.
template <class T>
std::vector<T> pattern(int64_t n, int seed) {
  std::vector<T> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    values[static_cast<size_t>(i)] = static_cast<T>(static_cast<float>((i * seed) % 7 - 3));
  }
  return values;
}

class Matmul : public KernelTest {
 protected:
  template <ScalarType kType>
  void expect_product(int32_t m, int32_t k, int32_t n) {
    TensorFactory<kType> tf;
    using T = typename TensorFactory<kType>::ctype;
    const std::vector<T> a = pattern<T>(m * k, 5), b = pattern<T>(k * n, 3);
    std::vector<T> expected(static_cast<size_t>(m * n));
    for (int32_t i = 0; i < m; ++i) {
      for (int32_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int32_t p = 0; p < k; ++p) {
          sum += static_cast<float>(a[static_cast<size_t>(i * k + p)]) *
                 static_cast<float>(b[static_cast<size_t>(p * n + j)]);
        }
        expected[static_cast<size_t>(i * n + j)] = static_cast<T>(sum);
      }
    }
    Tensor out = tf.zeros({m, n});
    mm_out(ctx, tf.make({m, k}, a), tf.make({k, n}, b), out);
    EXPECT_TENSOR_EQ(out, tf.make({m, n}, expected)) << m << "x" << k << "x" << n;
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
  }
};

TEST_F(Matmul, MultipliesOnEveryPath) {
  for (const auto& [m, k, n] : std::vector<std::tuple<int, int, int>>{
           {1, 600, 530}, {4, 3, 7}, {5, 193, 33}, {49, 200, 130}, {70, 9, 2}, {2, 515, 2}}) {
    expect_product<ScalarType::Float>(m, k, n);
    expect_product<ScalarType::Double>(m, k, n);
    expect_product<ScalarType::BFloat16>(m, k, n);
    expect_product<ScalarType::Int>(m, k, n);
  }
}

TEST_F(Matmul, TellsWhatItCosts) {
  expect_product<ScalarType::Float>(64, 32, 48);
  EXPECT_EQ(ctx.steps(), 64u * 32 * 48 / 64);
  expect_product<ScalarType::Int>(3, 32, 4);
  EXPECT_EQ(ctx.steps(), 64u * 32 * 48 / 64 + 3 * 32 * 4 / 64);
}

TEST_F(Matmul, EmptyInnerExtentGivesZeros) {
  Tensor out = floats.ones({2, 3});
  mm_out(ctx, floats.make({2, 0}, {}), floats.make({0, 3}, {}), out);
  EXPECT_TENSOR_EQ(out, floats.zeros({2, 3}));
}

TEST_F(Matmul, InfinityInTheLastRowDoesNotBecomeNaN) {
  const float inf = std::numeric_limits<float>::infinity();
  Tensor out = floats.zeros({1, 2});
  mm_out(ctx, floats.make({1, 3}, {1, 1, 1}), floats.make({3, 2}, {0, 1, 0, 1, inf, 1}), out);
  EXPECT_TENSOR_EQ(out, floats.make({1, 2}, {inf, 3}));
}

TEST_F(Matmul, BetaZeroDoesNotReadTheAddend) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor out = floats.zeros({1, 1});
  addmm_out(ctx, floats.full({1}, nan), floats.full({1, 2}, 2), floats.full({2, 1}, 3), Scalar(0),
            Scalar(0.5), out);
  EXPECT_TENSOR_EQ(out, floats.full({1, 1}, 6));
}

TEST_F(Matmul, AddendBroadcastsAlongEitherDim) {
  Tensor a = floats.ones({2, 1}), b = floats.ones({1, 3}), out = floats.zeros({2, 3});
  addmm_out(ctx, floats.make({2, 1}, {10, 20}), a, b, Scalar(1), Scalar(1), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {11, 11, 11, 21, 21, 21}));
  addmm_out(ctx, floats.make({3}, {1, 2, 3}), a, b, Scalar(2), Scalar(1), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {3, 5, 7, 3, 5, 7}));
}

TEST_F(Matmul, IntegersWrap) {
  Tensor out = bytes.zeros({1, 1});
  mm_out(ctx, bytes.make({1, 2}, {16, 200}), bytes.make({2, 1}, {16, 2}), out);
  EXPECT_TENSOR_EQ(out, bytes.make({1, 1}, {144}));
}

TEST_F(Matmul, LinearAddsItsBiasToEveryRow) {
  Tensor out = floats.zeros({1, 2, 2});
  linear_out(ctx, floats.make({1, 2, 2}, {1, 2, 3, 4}), floats.make({2, 2}, {1, 0, 1, 1}),
             floats.make({2}, {10, 20}), out);
  EXPECT_TENSOR_EQ(out, floats.make({1, 2, 2}, {11, 23, 13, 27}));
}

TEST_F(Matmul, BatchesMultiplyTheirOwnMatrices) {
  Tensor out = floats.zeros({2, 1, 1});
  bmm_out(ctx, floats.make({2, 1, 2}, {1, 2, 3, 4}), floats.make({2, 2, 1}, {1, 1, 2, 2}), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 1, 1}, {3, 14}));
}

TEST_F(Matmul, MultipliesComplexNumbersOfHalves) {
  TensorFactory<ScalarType::ComplexHalf> complex;
  using C = TensorFactory<ScalarType::ComplexHalf>::ctype;
  Tensor out = complex.full({1, 1, 1}, C(0, 0));
  bmm_out(ctx, complex.make({1, 1, 2}, {C(1, 2), C(0, 1)}),
          complex.make({1, 2, 1}, {C(3, -1), C(2, 5)}), out);
  EXPECT_TENSOR_EQ(out, complex.make({1, 1, 1}, {C(0, 7)}));
}

TEST_F(Matmul, RefusesWhatDoesNotMultiply) {
  Tensor out = floats.zeros({2, 2});
  mm_out(ctx, floats.ones({2, 3}), floats.ones({2, 2}), out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  KernelRuntimeContext types;
  mm_out(types, floats.ones({2, 2}), ints.ones({2, 2}), out);
  EXPECT_EQ(types.failure_state(), Error::InvalidArgument);
  KernelRuntimeContext room;
  mm_out(room, floats.ones({2, 2}), floats.ones({2, 3}), out);
  EXPECT_NE(room.failure_state(), Error::Ok);
}

}  // namespace
