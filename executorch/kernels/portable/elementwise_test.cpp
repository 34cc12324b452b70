#include <executorch/cpu/nn/stream.h>
#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>
#include <limits>

using namespace torch::executor::native;

namespace {

class Elementwise : public KernelTest {
 protected:
  const Scalar one{int64_t{1}};
};

TEST_F(Elementwise, BroadcastsBothOperands) {
  Tensor out = ints.zeros({2, 3});
  mul_out(ctx, ints.make({2, 1}, {10, 100}), ints.make({3}, {1, 2, 3}), out);
  EXPECT_TENSOR_EQ(out, ints.make({2, 3}, {10, 20, 30, 100, 200, 300}));
}

TEST_F(Elementwise, WrapsIntsThatOverflowWhicheverTypeTheyAreComputedIn) {
  const int32_t lowest = std::numeric_limits<int32_t>::min();
  const int32_t highest = std::numeric_limits<int32_t>::max();
  Tensor a = ints.make({2}, {highest, lowest}), out = ints.zeros({2}), wide = longs.zeros({2});
  add_out(ctx, a, chars.make({2}, {1, -1}), one, out);
  EXPECT_TENSOR_EQ(out, ints.make({2}, {lowest, highest}));
  sub_scalar_out(ctx, a, (int64_t{1} << 32) - 1, one, out);
  EXPECT_TENSOR_EQ(out, ints.make({2}, {lowest, lowest + 1}));
  mul_out(ctx, a, a, out);
  EXPECT_TENSOR_EQ(out, ints.make({2}, {1, 0}));
  add_out(ctx, a, a, one, wide);  // in the operands' type, whatever the result's is
  EXPECT_TENSOR_EQ(wide, longs.make({2}, {-2, 0}));
  where_out(ctx, bools.make({2}, {true, false}), a, ints.make({}, {7}), out);
  EXPECT_TENSOR_EQ(out, ints.make({2}, {highest, 7}));
}

/// Expects what arithmetic of int gives, modulo 256, for every pair of elements of T.
template <class T, class Factory>
void expect_arithmetic_of_all_pairs(KernelRuntimeContext& ctx, Factory& make) {
  Tensor a = make.zeros({256, 1}), b = make.zeros({256}), out = make.zeros({256, 256});
  for (int i = 0; i < 256; ++i) {
    a.template mutable_data_ptr<T>()[i] = b.template mutable_data_ptr<T>()[i] = static_cast<T>(i);
  }
  const auto expect = [&](const char* what, const auto& f) {
    for (int i = 0; i < 256 * 256; ++i) {
      const int x = static_cast<T>(i / 256), y = static_cast<T>(i % 256);
      ASSERT_EQ(out.template const_data_ptr<T>()[i], static_cast<T>(f(x, y)))
          << what << " of " << x << " and " << y;
    }
  };
  const Scalar one{int64_t{1}}, three{int64_t{3}};
  add_out(ctx, a, b, one, out);
  expect("add", [](int x, int y) { return x + y; });
  add_out(ctx, a, b, three, out);
  expect("add with alpha", [](int x, int y) { return x + 3 * y; });
  sub_out(ctx, a, b, one, out);
  expect("sub", [](int x, int y) { return x - y; });
  mul_out(ctx, a, b, out);
  expect("mul", [](int x, int y) { return x * y; });
  maximum_out(ctx, a, b, out);
  expect("maximum", [](int x, int y) { return x > y ? x : y; });
  minimum_out(ctx, a, b, out);
  expect("minimum", [](int x, int y) { return x < y ? x : y; });
  lt_tensor_out(ctx, a, b, out);
  expect("lt", [](int x, int y) { return x < y; });
  bitwise_xor_Tensor_out(ctx, a, b, out);
  expect("bitwise_xor", [](int x, int y) { return x ^ y; });
}

TEST_F(Elementwise, ComputesBytesModulo256AndComparesThemWithTheirSigns) {
  expect_arithmetic_of_all_pairs<uint8_t>(ctx, bytes);
  expect_arithmetic_of_all_pairs<int8_t>(ctx, chars);
}

TEST_F(Elementwise, AnyAlphaButZeroIsTrueAmongBools) {
  Tensor a = bools.make({2}, {true, false}), b = bools.make({2}, {true, true});
  Tensor out = bools.zeros({2});
  for (const int64_t alpha : {-1, 256}) {
    add_out(ctx, a, b, alpha, out);
    EXPECT_TENSOR_EQ(out, bools.make({2}, {true, true}));
  }
  add_out(ctx, a, b, int64_t{0}, out);
  EXPECT_TENSOR_EQ(out, a);
}

TEST_F(Elementwise, BroadcastsAcrossManyChunksAndRows) {
  // Longer than a chunk, in rows long enough to be walked one by one, and not a multiple of both.
  const int32_t rows = 37, columns = 1031;
  Tensor a = floats.zeros({rows, columns}), out = floats.zeros({rows, columns});
  Tensor row = floats.zeros({columns}), column = floats.zeros({rows, 1});
  for (int32_t i = 0; i < columns; ++i) row.mutable_data_ptr<float>()[i] = static_cast<float>(i);
  for (int32_t i = 0; i < rows; ++i) {
    column.mutable_data_ptr<float>()[i] = static_cast<float>(10000 * i);
  }
  add_out(ctx, a, row, one, out);
  add_out(ctx, out, column, one, a);
  for (int32_t i = 0; i < rows * columns; ++i) {
    ASSERT_EQ(a.const_data_ptr<float>()[i],
              static_cast<float>(10000 * (i / columns) + i % columns));
  }
}

TEST_F(Elementwise, TakesEachOperandInItsOwnDimOrder) {
  Tensor a = floats.make({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor b = floats.channels_last_like(a);
  Tensor out = floats.zeros_channels_last({1, 2, 2, 2});
  sub_out(ctx, a, b, one, out);
  EXPECT_TENSOR_EQ(out, floats.zeros_channels_last({1, 2, 2, 2}));
  add_out(ctx, b, b, one, out);
  EXPECT_EQ(out.const_data_ptr<float>()[1], 8);  // the second channel of the first pixel
}

TEST_F(Elementwise, PromotesMixedTypesAndConvertsTheResult) {
  Tensor out = halves.zeros({2});
  add_out(ctx, ints.make({2}, {1, 2}), floats.make({2}, {0.5, 0.25}), one, out);
  EXPECT_TENSOR_EQ(out, halves.make({2}, {1.5, 2.25}));
}

TEST_F(Elementwise, RoundsAFunctionOfHalvesOnceToTheTypeOfOut) {
  Tensor x = halves.make({2}, {3, 100}), out = floats.zeros({2});
  acosh_out(ctx, x, out);
  EXPECT_TENSOR_CLOSE(out, floats.make({2}, {std::acosh(3.0f), std::acosh(100.0f)}));
  TensorFactory<ScalarType::BFloat16> bfloats;
  Tensor half = halves.zeros({2});
  expm1_out(ctx, bfloats.make({2}, {1, 2}), half);
  EXPECT_TENSOR_EQ(half, halves.make({2}, {std::expm1(1.0f), std::expm1(2.0f)}));
}

TEST_F(Elementwise, WrapsIntegersInTheirCommonTypeEvenWhenOutIsWider) {
  Tensor out = ints.zeros({1});
  add_out(ctx, chars.make({1}, {127}), chars.make({1}, {1}), one, out);
  EXPECT_TENSOR_EQ(out, ints.make({1}, {-128}));
  Tensor flag = bools.zeros({1});
  eq_scalar_out(ctx, chars.make({1}, {1}), Scalar(int64_t{257}), flag);
  EXPECT_TENSOR_EQ(flag, bools.make({1}, {1}));
}

TEST_F(Elementwise, ResizesABoundedOut) {
  Tensor out = floats.zeros({4, 4}, TensorShapeDynamism::DYNAMIC_BOUND);
  add_scalar_out(ctx, floats.ones({2, 3}), Scalar(1.5), one, out);
  EXPECT_TENSOR_EQ(out, floats.full({2, 3}, 2.5));
}

TEST_F(Elementwise, AcceptsEmptyAndZeroDimTensors) {
  Tensor empty = floats.zeros({0, 3}), out = floats.zeros({0, 3});
  mul_out(ctx, empty, floats.ones({3}), out);
  Tensor point = floats.zeros({});
  mul_out(ctx, floats.full({}, 3), floats.full({}, 2), point);
  EXPECT_TENSOR_EQ(point, floats.full({}, 6));
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
}

TEST_F(Elementwise, RefusesShapesThatDoNotBroadcast) {
  Tensor out = floats.zeros({2, 3});
  add_out(ctx, floats.ones({2, 3}), floats.ones({4}), one, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, RefusesAnOutThatCannotHoldTheShape) {
  Tensor out = floats.zeros({3});
  add_out(ctx, floats.ones({2, 3}), floats.ones({3}), one, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, RefusesToStoreFloatsInIntegers) {
  Tensor out = ints.zeros({2});
  add_out(ctx, floats.ones({2}), floats.ones({2}), one, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, RefusesAFloatAlphaOfIntegers) {
  Tensor out = ints.zeros({2});
  add_out(ctx, ints.ones({2}), ints.ones({2}), Scalar(1.5), out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, RefusesToSubtractBools) {
  Tensor out = bools.zeros({1});
  sub_out(ctx, bools.ones({1}), bools.ones({1}), one, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, ReportsIntegerDivisionByZero) {
  Tensor out = ints.zeros({2});
  div_out_mode(ctx, ints.make({2}, {1, 2}), ints.make({2}, {1, 0}), "floor", out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  KernelRuntimeContext second;
  remainder_Scalar_out(second, ints.ones({2}), Scalar(int64_t{0}), out);
  EXPECT_EQ(second.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, DividesTheLowestIntegerByMinusOne) {
  Tensor out = longs.zeros({1});
  div_out_mode(ctx, longs.make({1}, {INT64_MIN}), longs.make({1}, {-1}), "trunc", out);
  EXPECT_TENSOR_EQ(out, longs.make({1}, {INT64_MIN}));
  fmod_Tensor_out(ctx, longs.make({1}, {INT64_MIN}), longs.make({1}, {-1}), out);
  EXPECT_TENSOR_EQ(out, longs.make({1}, {0}));
}

TEST_F(Elementwise, RefusesAnUnknownRoundingMode) {
  Tensor out = floats.zeros({1});
  div_out_mode(ctx, floats.ones({1}), floats.ones({1}), "up", out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, RefusesNegativePowersOfIntegers) {
  Tensor out = ints.zeros({1});
  pow_Tensor_Scalar_out(ctx, ints.ones({1}), Scalar(int64_t{-1}), out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, FillsOnlyWithValuesThatFit) {
  Tensor out = bytes.zeros({3});
  fill_scalar_out(ctx, bytes.zeros({3}), Scalar(7.9), out);
  EXPECT_TENSOR_EQ(out, bytes.full({3}, 7));
  fill_scalar_out(ctx, bytes.zeros({3}), Scalar(int64_t{300}), out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, SelectsByACondition) {
  Tensor out = floats.zeros({2, 2});
  where_out(ctx, bools.make({2, 1}, {1, 0}), floats.make({2}, {1, 2}), floats.full({}, -1), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 2}, {1, 2, -1, -1}));
  where_out(ctx, bytes.make({2, 1}, {0, 200}), floats.make({2}, {1, 2}), floats.full({}, -1), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 2}, {-1, -1, 1, 2}));
  Tensor masked = longs.zeros({2});
  masked_fill_scalar_out(ctx, longs.make({2}, {1, 2}), bools.make({2}, {1, 0}), Scalar(5.0),
                         masked);
  EXPECT_TENSOR_EQ(masked, longs.make({2}, {5, 2}));
}

TEST_F(Elementwise, WorksInPlace) {
  Tensor a = floats.make({3}, {1, 2, 3});
  mul_out(ctx, a, a, a);
  EXPECT_TENSOR_EQ(a, floats.make({3}, {1, 4, 9}));
}

TEST_F(Elementwise, ActivationsRefuseIntegersAndUnknownModes) {
  Tensor out = floats.zeros({1});
  gelu_out(ctx, ints.ones({1}), "none", out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  KernelRuntimeContext second;
  gelu_out(second, floats.ones({1}), "fast", out);
  EXPECT_EQ(second.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, WritesTheSamePastTheCaches) {
  const int32_t n = 5003;  // several chunks
  Tensor a = floats.zeros({3, n}), b = halves.zeros({n});
  for (int32_t i = 0; i < 3 * n; ++i) a.mutable_data_ptr<float>()[i] = static_cast<float>(i % 97);
  for (int32_t i = 0; i < n; ++i) {
    b.mutable_data_ptr<executorch::aten::Half>()[i] = static_cast<float>(i % 13);
  }
  const auto run = [&](int64_t cache_bytes, Tensor sum, Tensor half, Tensor less, Tensor number) {
    const int64_t before = executorch::cpu::internal::set_cache_bytes(cache_bytes);
    add_out(ctx, a, b, one, sum);
    mul_out(ctx, b, b, half);
    lt_tensor_out(ctx, a, b, less);
    bitwise_or_Tensor_out(ctx, less, less, less);
    add_out(ctx, a, less, one, number);
    executorch::cpu::internal::set_cache_bytes(before);
  };
  Tensor sums[] = {floats.zeros({3, n}), floats.zeros({3, n})};
  Tensor products[] = {halves.zeros({n}), halves.zeros({n})};
  Tensor flags[] = {bools.zeros({3, n}), bools.zeros({3, n})};
  Tensor numbers[] = {halves.zeros({3, n}), halves.zeros({3, n})};
  run(INT64_MAX, sums[0], products[0], flags[0], numbers[0]);
  run(0, sums[1], products[1], flags[1], numbers[1]);
  EXPECT_TENSOR_EQ(sums[0], sums[1]);
  EXPECT_TENSOR_EQ(products[0], products[1]);
  EXPECT_TENSOR_EQ(flags[0], flags[1]);
  EXPECT_TENSOR_EQ(numbers[0], numbers[1]);
  EXPECT_EQ(sums[1].const_data_ptr<float>()[n + 1], static_cast<float>((n + 1) % 97 + 1));
}

TEST_F(Elementwise, NotOfBoolIsLogical) {
  Tensor out = bools.zeros({2});
  bitwise_not_out(ctx, bools.make({2}, {1, 0}), out);
  EXPECT_TENSOR_EQ(out, bools.make({2}, {0, 1}));
  bitwise_not_out(ctx, floats.zeros({2}), out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Elementwise, AnyByteButZeroIsTrue) {
  const Tensor a = bools.make({4}, {0, 2, 255, 1}), b = bools.make({4}, {4, 4, 0, 1});
  const auto expect = [&](const char* what, const std::vector<uint8_t>& expected, auto&& run) {
    Tensor out = bools.zeros({4});
    run(out);
    EXPECT_EQ(ctx.failure_state(), Error::Ok) << what;
    const auto* found = static_cast<const uint8_t*>(out.const_data_ptr());
    EXPECT_EQ(std::vector<uint8_t>(found, found + 4), expected) << what;
  };
  expect("and", {0, 1, 0, 1}, [&](Tensor& out) { logical_and_out(ctx, a, b, out); });
  expect("bitwise and", {0, 1, 0, 1}, [&](Tensor& out) { bitwise_and_Tensor_out(ctx, a, b, out); });
  expect("bitwise xor", {1, 0, 1, 0}, [&](Tensor& out) { bitwise_xor_Tensor_out(ctx, a, b, out); });
  expect("not", {1, 0, 0, 0}, [&](Tensor& out) { bitwise_not_out(ctx, a, out); });
  expect("equal", {0, 1, 0, 1}, [&](Tensor& out) { eq_tensor_out(ctx, a, b, out); });
  expect("mul", {0, 1, 0, 1}, [&](Tensor& out) { mul_out(ctx, a, b, out); });
  expect("maximum", {1, 1, 1, 1}, [&](Tensor& out) { maximum_out(ctx, a, b, out); });
  expect("where", {1, 1, 0, 1}, [&](Tensor& out) { where_out(ctx, a, b, b, out); });
}

TEST_F(Elementwise, RefusesBoundsBeyondIntegers) {
  Tensor x = longs.make({3}, {std::numeric_limits<int64_t>::min(), 5, 1}), out = longs.zeros({3});
  for (const double bound : {1e300, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    KernelRuntimeContext refused;
    hardtanh_out(refused, x, Scalar(-bound), Scalar(bound), out);
    EXPECT_EQ(refused.failure_state(), Error::InvalidArgument);
  }
  hardtanh_out(ctx, x, Scalar(-0x1p63), Scalar(4.5), out);
  EXPECT_TENSOR_EQ(out, longs.make({3}, {std::numeric_limits<int64_t>::min(), 4, 1}));
}

}  // namespace
