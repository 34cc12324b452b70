#include <executorch/kernels/portable/internal/testing.h>

#include <limits>
#include <numeric>
#include <vector>

using namespace torch::executor::native;

namespace {

class Shapes : public KernelTest {
 protected:
  Tensor count(const std::vector<int32_t>& sizes) {
    std::vector<float> values(std::accumulate(sizes.begin(), sizes.end(), size_t{1},
                                              [](size_t n, int32_t s) { return n * s; }));
    std::iota(values.begin(), values.end(), 0.0f);
    return floats.make(sizes, values);
  }
};

TEST_F(Shapes, PermuteOfALargeMatrixIsItsTranspose) {
  const int32_t rows = 70, columns = 133;
  Tensor x = count({rows, columns}), out = floats.zeros({columns, rows});
  const int64_t dims[] = {1, 0};
  permute_copy_out(ctx, x, dims, out);
  for (int32_t i = 0; i < rows; ++i) {
    for (int32_t j = 0; j < columns; ++j) {
      ASSERT_EQ(out.const_data_ptr<float>()[j * rows + i], static_cast<float>(i * columns + j));
    }
  }
}

TEST_F(Shapes, CopiesBetweenDimOrdersKeepLogicalValues) {
  Tensor x = count({2, 3, 2, 2}), last = floats.full_channels_last({2, 3, 2, 2}, 0);
  clone_out(ctx, x, std::nullopt, last);
  EXPECT_TENSOR_EQ(last, floats.channels_last_like(x));
  Tensor back = floats.zeros({2, 3, 2, 2});
  clone_out(ctx, last, std::nullopt, back);
  EXPECT_TENSOR_EQ(back, x);
  Tensor flat = floats.zeros({24});
  const int64_t size = -1;
  view_copy_out(ctx, last, {&size, 1}, flat);
  EXPECT_TENSOR_EQ(flat, count({24}));
}

TEST_F(Shapes, DimOrderCopyRefusesAnOutOfAnotherOrder) {
  Tensor x = count({1, 2, 2, 2}), out = floats.zeros({1, 2, 2, 2});
  const int64_t order[] = {0, 2, 3, 1};
  _to_dim_order_copy_out(ctx, x, false, IntArrayRef(order), out);
  expect_failure("out is contiguous, channels last was asked for");
}

TEST_F(Shapes, ConversionOutOfRangeIsDefined) {
  const float big = 1e20f, nan = std::numeric_limits<float>::quiet_NaN();
  Tensor x = floats.make({4}, {big, nan, -1.5f, 300.7f});
  Tensor byte = bytes.zeros({4});
  to_copy_out(ctx, x, false, std::nullopt, byte);
  EXPECT_TENSOR_EQ(byte, bytes.make({4}, {0, 0, 255, 44}));
  const int32_t lowest = std::numeric_limits<int32_t>::min();
  Tensor wide = ints.zeros({4});
  to_copy_out(ctx, x, false, std::nullopt, wide);
  EXPECT_TENSOR_EQ(wide, ints.make({4}, {lowest, lowest, -1, 300}));
}

TEST_F(Shapes, SliceClampsAsPythonDoes) {
  Tensor x = count({5}), out = floats.zeros({5}, TensorShapeDynamism::DYNAMIC_BOUND);
  slice_copy_Tensor_out(ctx, x, 0, -100, 100, 2, out);
  EXPECT_TENSOR_EQ(out, floats.make({3}, {0, 2, 4}));
  slice_copy_Tensor_out(ctx, x, 0, 4, 2, 1, out);
  EXPECT_TENSOR_EQ(out, floats.make({0}, {}));
  slice_copy_Tensor_out(ctx, x, 0, 0, 2, 0, out);
  expect_failure("step zero");
}

TEST_F(Shapes, OutBoundsAreKept) {
  Tensor x = count({4}), out = floats.zeros({2}, TensorShapeDynamism::DYNAMIC_BOUND);
  slice_copy_Tensor_out(ctx, x, 0, 0, 4, 1, out);
  EXPECT_NE(ctx.failure_state(), Error::Ok);
}

TEST_F(Shapes, CatSkipsEmptyListsAndPromotes) {
  Tensor out = floats.zeros({2, 3});
  const Tensor parts[] = {floats.make({0}, {}), count({2, 1}), ints.make({2, 2}, {7, 8, 9, 10})};
  cat_out(ctx, TensorList(parts, 3), 1, out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {0, 7, 8, 1, 9, 10}));
  const Tensor wrong[] = {count({2, 1}), count({3, 1})};
  cat_out(ctx, TensorList(wrong, 2), 1, out);
  expect_failure("extents differ off the dim");
  cat_out(ctx, TensorList(), 0, out);
  expect_failure("nothing to join");
}

TEST_F(Shapes, CatPassesOverWhatHasNoElementsAndDoesNotFit) {
  Tensor out = floats.zeros({4, 1});
  const Tensor parts[] = {floats.make({0, 10, 3}, {}), count({2, 1}), floats.make({0, 1}, {}),
                          count({2, 1})};
  cat_out(ctx, TensorList(parts, 4), 0, out);
  EXPECT_TENSOR_EQ(out, floats.make({4, 1}, {0, 1, 0, 1}));
  Tensor wide = floats.zeros({5, 0});
  const Tensor empty[] = {floats.make({0}, {}), floats.make({2, 0}, {}), floats.make({3, 0}, {})};
  cat_out(ctx, TensorList(empty, 3), 0, wide);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
}

TEST_F(Shapes, SplitNeedsAsManyOutsAsPieces) {
  Tensor x = count({5});
  const Tensor outs[] = {floats.zeros({2}), floats.zeros({2}), floats.zeros({1})};
  split_copy_Tensor_out(ctx, x, 2, 0, TensorList(outs, 3));
  EXPECT_TENSOR_EQ(outs[2], floats.make({1}, {4}));
  split_copy_Tensor_out(ctx, x, 2, 0, TensorList(outs, 2));
  expect_failure("two outs for three pieces");
}

TEST_F(Shapes, AsStridedStaysInsideItsStorage) {
  Tensor x = count({4}), out = floats.zeros({2, 2});
  const int64_t size[] = {2, 2}, stride[] = {1, 2}, wide[] = {3, 2};
  as_strided_copy_out(ctx, x, size, stride, 0, out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 2}, {0, 2, 1, 3}));
  as_strided_copy_out(ctx, x, size, wide, 0, out);
  expect_failure("element 5 of 4");
  as_strided_copy_out(ctx, x, size, stride, 1, out);
  expect_failure("the offset pushes it out");
}

TEST_F(Shapes, ConstantPadCropsWhereNegative) {
  Tensor out = floats.zeros({2, 3});
  const int64_t pad[] = {-1, 1, 0, -1};
  constant_pad_nd_out(ctx, count({3, 3}), pad, Scalar(9), out);
  EXPECT_TENSOR_EQ(out, floats.make({2, 3}, {1, 2, 9, 4, 5, 9}));
}

TEST_F(Shapes, ReflectionMustBeSmallerThanTheDim) {
  Tensor out = floats.zeros({1, 7});
  const int64_t pad[] = {2, 2}, wide[] = {3, 1};
  reflection_pad1d_out(ctx, count({1, 3}), pad, out);
  EXPECT_TENSOR_EQ(out, floats.make({1, 7}, {2, 1, 0, 1, 2, 1, 0}));
  reflection_pad1d_out(ctx, count({1, 3}), wide, out);
  expect_failure("pad 3 of extent 3");
}

TEST_F(Shapes, CopyInPlaceBroadcastsItsSource) {
  Tensor x = count({2, 2});
  copy_(ctx, x, floats.make({2}, {7, 8}), false);
  EXPECT_TENSOR_EQ(x, floats.make({2, 2}, {7, 8, 7, 8}));
  copy_(ctx, x, count({3}), false);
  expect_failure("3 does not broadcast to 2");
}

TEST_F(Shapes, RangesCountTowardsTheirEnd) {
  Tensor out = ints.zeros({8}, TensorShapeDynamism::DYNAMIC_BOUND);
  arange_start_out(ctx, Scalar(5), Scalar(0), Scalar(-2), out);
  EXPECT_TENSOR_EQ(out, ints.make({3}, {5, 3, 1}));
  arange_start_out(ctx, Scalar(0), Scalar(5), Scalar(-1), out);
  expect_failure("the step leads away");
}

TEST_F(Shapes, RandomNumbersAreInRangeAndDiffer) {
  Tensor a = floats.zeros({100}), b = floats.zeros({100});
  const int64_t size = 100;
  rand_out(ctx, {&size, 1}, a);
  rand_out(ctx, {&size, 1}, b);
  double sum = 0;
  for (int i = 0; i < 100; ++i) {
    const float value = a.const_data_ptr<float>()[i];
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100, 0.5, 5 * 0.0289) << "five standard deviations of the mean";
  EXPECT_NE(a.const_data_ptr<float>()[0], b.const_data_ptr<float>()[0]);
}

}  // namespace
