#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>
#include <vector>

using namespace torch::executor::native;

namespace {

class Reduce : public KernelTest {
 protected:
  Tensor sum(const Tensor& self, std::vector<int64_t> dims, bool keepdim, Tensor out) {
    sum_dim_out(ctx, self, IntArrayRef(dims.data(), dims.size()), keepdim, std::nullopt, out);
    return out;
  }
};

TEST_F(Reduce, SumsOverAnySetOfDims) {
  Tensor x = floats.make({2, 2, 3}, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  EXPECT_TENSOR_EQ(sum(x, {2}, false, floats.zeros({2, 2})), floats.make({2, 2}, {6, 15, 60, 150}));
  EXPECT_TENSOR_EQ(sum(x, {0}, true, floats.zeros({1, 2, 3})),
                   floats.make({1, 2, 3}, {11, 22, 33, 44, 55, 66}));
  EXPECT_TENSOR_EQ(sum(x, {0, -1}, false, floats.zeros({2})), floats.make({2}, {66, 165}));
  EXPECT_TENSOR_EQ(sum(x, {}, false, floats.zeros({})), floats.full({}, 231));
}

TEST_F(Reduce, SumsChannelsLastInputsByTheirLogicalDims) {
  Tensor x = floats.make({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
  Tensor y = floats.channels_last_like(x);
  EXPECT_TENSOR_EQ(sum(y, {2, 3}, false, floats.zeros({1, 2})), floats.make({1, 2}, {10, 100}));
  EXPECT_TENSOR_EQ(sum(y, {1}, false, floats.zeros({1, 2, 2})),
                   floats.make({1, 2, 2}, {11, 22, 33, 44}));
}

TEST_F(Reduce, FindsTheFirstExtremeAndTheFirstNaNOfColumnsAndRows) {
  const int32_t rows = 40, columns = 300;  // more than a block of both
  Tensor across = floats.zeros({rows, columns}), along = floats.zeros({columns, rows});
  const auto set = [&](int32_t row, int32_t column, float value) {
    across.mutable_data_ptr<float>()[row * columns + column] = value;
    along.mutable_data_ptr<float>()[column * rows + row] = value;
  };
  for (int32_t c = 0; c < columns; ++c) {
    set(c % rows, c, 5);
    set(rows - 1, c, 5);
  }
  set(30, 7, NAN);
  set(35, 7, NAN);
  set(20, 7, 9);
  Tensor by_column = longs.zeros({columns}), by_row = longs.zeros({columns});
  argmax_out(ctx, across, 0, false, by_column);
  argmax_out(ctx, along, 1, false, by_row);
  for (int32_t c = 0; c < columns; ++c) {
    ASSERT_EQ(by_column.const_data_ptr<int64_t>()[c], c == 7 ? 30 : c % rows) << c;
  }
  EXPECT_TENSOR_EQ(by_column, by_row);
}

TEST_F(Reduce, VariesAlikeAlongRowsAndColumns) {
  const int32_t rows = 50, columns = 260;
  Tensor across = halves.zeros({rows, columns}), along = halves.zeros({columns, rows});
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      const auto value = static_cast<executorch::aten::Half>(static_cast<float>(r * (c % 3) + c));
      across.mutable_data_ptr<executorch::aten::Half>()[r * columns + c] = value;
      along.mutable_data_ptr<executorch::aten::Half>()[c * rows + r] = value;
    }
  }
  const int64_t first = 0, last = 1;
  Tensor a = halves.zeros({columns}), b = halves.zeros({columns});
  var_out(ctx, across, IntArrayRef(&first, 1), false, false, a);
  var_out(ctx, along, IntArrayRef(&last, 1), false, false, b);
  EXPECT_TENSOR_EQ(a, b);
  // Of 0, 1 ... 49, and of the doubles.
  const auto* variance = a.const_data_ptr<executorch::aten::Half>();
  EXPECT_EQ(static_cast<float>(variance[0]), 0);
  EXPECT_EQ(static_cast<float>(variance[1]), 208.25f);
  EXPECT_EQ(static_cast<float>(variance[2]), 833);
}

TEST_F(Reduce, WalksManyColumnsAndManyRows) {
  const int32_t rows = 133, columns = 1500;
  Tensor x = floats.zeros({rows, columns});
  for (int32_t i = 0; i < rows * columns; ++i) {
    x.mutable_data_ptr<float>()[i] = static_cast<float>((i / columns) * 3 + i % columns);
  }
  Tensor down = sum(x, {0}, false, floats.zeros({columns}));
  for (int32_t c = 0; c < columns; ++c) {
    ASSERT_EQ(down.const_data_ptr<float>()[c],
              static_cast<float>(3 * rows * (rows - 1) / 2 + rows * c));
  }
  Tensor across = sum(x, {1}, false, floats.zeros({rows}));
  for (int32_t r = 0; r < rows; ++r) {
    ASSERT_EQ(across.const_data_ptr<float>()[r],
              static_cast<float>(columns * (columns - 1) / 2 + columns * 3 * r));
  }
}

TEST_F(Reduce, AccumulatesHalvesInFloat) {
  // In Half the sum would stop growing at 2048.
  EXPECT_TENSOR_EQ(sum(halves.ones({4096}), {0}, false, halves.zeros({})), halves.full({}, 4096));
}

TEST_F(Reduce, SumsBoolsAndTruncatedFloatsIntoLong) {
  EXPECT_TENSOR_EQ(sum(bools.make({3}, {1, 0, 1}), {0}, false, longs.zeros({})), longs.full({}, 2));
  EXPECT_TENSOR_EQ(sum(floats.make({2}, {1.7, 2.7}), {0}, false, longs.zeros({})),
                   longs.full({}, 3));
}

TEST_F(Reduce, GivesNeutralElementsForNothing) {
  Tensor none = floats.zeros({2, 0});
  EXPECT_TENSOR_EQ(sum(none, {1}, false, floats.zeros({2})), floats.zeros({2}));
  Tensor product = floats.zeros({});
  prod_out(ctx, none, std::nullopt, product);
  EXPECT_TENSOR_EQ(product, floats.ones({}));
  Tensor flag = bools.ones({});
  any_all_out(ctx, none, flag);
  EXPECT_TENSOR_EQ(flag, bools.zeros({}));
  Tensor mean = floats.zeros({});
  mean_dtype_out(ctx, none, std::nullopt, mean);
  EXPECT_TRUE(std::isnan(mean.const_data_ptr<float>()[0]));
}

TEST_F(Reduce, VarianceOfALargeOffsetIsExact) {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) values.push_back(1e8 + i % 2);
  Tensor x = doubles.make({3000}, values), variance = doubles.zeros({}), mean = doubles.zeros({});
  var_mean_correction_out(ctx, x, std::nullopt, Scalar(int64_t{0}), false, variance, mean);
  EXPECT_NEAR(variance.const_data_ptr<double>()[0], 0.25, 1e-9);
  EXPECT_EQ(mean.const_data_ptr<double>()[0], 1e8 + 0.5);
}

TEST_F(Reduce, FindsTheFirstExtremeAndNanBeforeAll) {
  Tensor x = floats.make({2, 4}, {1, 3, 3, 0, 5, NAN, 7, NAN});
  Tensor values = floats.zeros({2}), indices = longs.zeros({2});
  max_out(ctx, x, 1, false, values, indices);
  EXPECT_TENSOR_EQ(values, floats.make({2}, {3, NAN}));
  EXPECT_TENSOR_EQ(indices, longs.make({2}, {1, 1}));
  Tensor flat = longs.zeros({});
  argmin_out(ctx, floats.make({2, 2}, {4, 3, 0, 0}), std::nullopt, false, flat);
  EXPECT_TENSOR_EQ(flat, longs.full({}, 2));
}

TEST_F(Reduce, CountsIndicesInLogicalOrderWhateverTheDimOrder) {
  Tensor x = floats.make({1, 2, 2, 2}, {0, 0, 0, 0, 0, 9, 0, 0});
  Tensor flat = longs.zeros({});
  argmax_out(ctx, floats.channels_last_like(x), std::nullopt, false, flat);
  EXPECT_TENSOR_EQ(flat, longs.full({}, 5));
}

TEST_F(Reduce, RefusesExtremesOfNothing) {
  Tensor out = floats.zeros({2});
  const int64_t dim = 1;
  amax_out(ctx, floats.zeros({2, 0}), IntArrayRef(&dim, 1), false, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Reduce, ExtremesOfATensorWithoutElementsAreTheBoundsOfItsType) {
  TensorFactory<ScalarType::Short> shorts;
  Tensor real = floats.zeros({}), small = shorts.zeros({}), flag = bools.zeros({});
  max_unary_out(ctx, floats.zeros({2, 0}), real);
  EXPECT_TENSOR_EQ(real, floats.full({}, -INFINITY));
  min_unary_out(ctx, floats.zeros({2, 0}), real);
  EXPECT_TENSOR_EQ(real, floats.full({}, INFINITY));
  max_unary_out(ctx, shorts.zeros({0}), small);
  EXPECT_TENSOR_EQ(small, shorts.full({}, -32768));
  min_unary_out(ctx, bools.zeros({0}), flag);
  EXPECT_TENSOR_EQ(flag, bools.ones({}));
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  min_unary_out(ctx, floats.zeros({0}), small);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Reduce, RefusesBadDimsAndTypes) {
  const std::vector<std::vector<int64_t>> bad = {{2}, {-3}, {0, 0}, {1, -1}};
  for (const std::vector<int64_t>& dims : bad) {
    KernelRuntimeContext context;
    Tensor out = floats.zeros({2});
    sum_dim_out(context, floats.zeros({2, 2}), IntArrayRef(dims.data(), dims.size()), false,
                std::nullopt, out);
    EXPECT_EQ(context.failure_state(), Error::InvalidArgument);
  }
  Tensor out = longs.zeros({});
  mean_dtype_out(ctx, longs.ones({2}), std::nullopt, out);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

TEST_F(Reduce, CumulatesAlongAnyDim) {
  Tensor x = longs.make({2, 3}, {1, 2, 3, 4, 5, 6}), out = longs.zeros({2, 3});
  cumsum_out(ctx, x, 1, std::nullopt, out);
  EXPECT_TENSOR_EQ(out, longs.make({2, 3}, {1, 3, 6, 4, 9, 15}));
  cumsum_out(ctx, x, 0, std::nullopt, out);
  EXPECT_TENSOR_EQ(out, longs.make({2, 3}, {1, 2, 3, 5, 7, 9}));
}

}  // namespace
