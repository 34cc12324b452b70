#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using aten::Tensor;
using testing::TensorFactory;

TEST(TensorUtil, DimensionsMayCountFromTheEnd) {
  TensorFactory<ScalarType::Float> tf;
  EXPECT_TRUE(tensor_has_dim(tf.ones({2, 3}), -2));
  EXPECT_FALSE(tensor_has_dim(tf.ones({2, 3}), 2));
  EXPECT_TRUE(tensor_has_dim(tf.ones({}), 0));
  EXPECT_FALSE(tensor_has_dim(tf.ones({}), 1));
  EXPECT_TRUE(tensor_dim_has_index(tf.ones({2, 3}), -1, -3));
  EXPECT_FALSE(tensor_dim_has_index(tf.ones({2, 3}), 0, 2));
  EXPECT_FALSE(tensor_has_non_empty_dim(tf.ones({2, 0}), -1));
}

TEST(TensorUtil, ShapesAreEqualOrBothOneElement) {
  TensorFactory<ScalarType::Float> tf;
  EXPECT_TRUE(tensors_have_same_shape(tf.ones({2, 3}), tf.zeros({2, 3})));
  EXPECT_TRUE(tensors_have_same_shape(tf.ones({1, 1}), tf.zeros({})));
  EXPECT_FALSE(tensors_have_same_shape(tf.ones({2, 3}), tf.zeros({3, 2})));
  EXPECT_FALSE(tensors_have_same_shape(tf.ones({2}), tf.ones({2}), tf.ones({2, 1})));
}

TEST(TensorUtil, TypesAreChecked) {
  TensorFactory<ScalarType::Half> half;
  TensorFactory<ScalarType::Long> longs;
  EXPECT_TRUE(tensor_is_realh_type(half.ones({1})));
  EXPECT_FALSE(tensor_is_real_type(half.ones({1})));
  EXPECT_TRUE(tensor_is_integral_type(longs.ones({1})));
  EXPECT_FALSE(tensors_have_same_dtype(half.ones({1}), longs.ones({1})));
  EXPECT_TRUE(tensor_is_type(longs.ones({1}), ScalarType::Int, ScalarType::Long));
  EXPECT_FALSE(tensor_can_cast_to(half.ones({1}), ScalarType::Int));
}

TEST(TensorUtil, ContiguityIsAboutStrides) {
  TensorFactory<ScalarType::Float> tf;
  EXPECT_TRUE(tensor_is_contiguous(tf.ones({2, 0, 3})));
  EXPECT_FALSE(tensor_is_contiguous(tf.ones_channels_last({1, 2, 3, 4})));
  EXPECT_TRUE(tensor_is_channels_last_dim_order(tf.ones_channels_last({1, 2, 3, 4})));
  EXPECT_TRUE(tensors_have_same_dim_order(tf.ones({2}), tf.ones({2, 3})));
  EXPECT_FALSE(
      tensors_have_same_dim_order(tf.ones({1, 2, 3, 4}), tf.ones_channels_last({1, 2, 3, 4})));
}

TEST(TensorUtil, TensorsWithoutDimOrderOrStridesAreContiguous) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor whole = tf.ones({1, 2, 3, 4}), channels_last = tf.ones_channels_last({1, 2, 3, 4});
  int32_t sizes[] = {1, 2, 3, 4};
  uint8_t dim_order[] = {0, 1, 2, 3};
  uint8_t to_channels[] = {0, 2, 3, 1};
  aten::TensorImpl bare(ScalarType::Float, 4, sizes);
  aten::TensorImpl ordered(ScalarType::Float, 4, sizes, nullptr, dim_order);
  for (const Tensor& t : {Tensor(&bare), Tensor(&ordered)}) {
    EXPECT_TRUE(tensor_is_contiguous(t));
    EXPECT_TRUE(tensors_have_same_strides(t, whole));
    EXPECT_FALSE(tensors_have_same_strides(channels_last, t));
    EXPECT_TRUE(tensor_has_valid_dim_order(t));
    EXPECT_TRUE(tensor_is_default_dim_order(t));
    EXPECT_TRUE(tensor_is_default_or_channels_last_dim_order(t));
    EXPECT_FALSE(tensor_is_channels_last_dim_order(t));
    EXPECT_TRUE(tensors_have_same_dim_order(t, whole, t));
    EXPECT_FALSE(tensors_have_same_dim_order(t, channels_last));
    uint8_t found[4] = {};
    EXPECT_EQ(get_dim_order(t, found, 3), Error::InvalidArgument);
    EXPECT_EQ(get_dim_order(t, found, 4), Error::Ok);
    EXPECT_EQ(found[3], 3);
  }
  aten::TensorImpl by_channels(ScalarType::Float, 4, sizes, nullptr, to_channels);
  EXPECT_FALSE(tensor_is_contiguous(Tensor(&by_channels)));
  EXPECT_TRUE(tensors_have_same_strides(Tensor(&by_channels), channels_last));
}

TEST(TensorUtil, TensorsOfTooManyDimensionsWithoutAnOrderHaveNone) {
  std::vector<int32_t> many(kTensorDimensionLimit + 1, 1);
  aten::TensorImpl impl(ScalarType::Float, static_cast<ssize_t>(many.size()), many.data());
  const Tensor t(&impl);
  EXPECT_FALSE(tensor_is_contiguous(t));
  EXPECT_FALSE(tensors_have_same_strides(t, t));
  EXPECT_FALSE(tensors_have_same_dim_order(t, t));
  EXPECT_FALSE(tensor_has_valid_dim_order(t));
  EXPECT_FALSE(tensor_is_default_dim_order(t));
  std::vector<uint8_t> found(many.size());
  EXPECT_EQ(get_dim_order(t, found.data(), found.size()), Error::InvalidArgument);
}

TEST(TensorUtil, CoordinatesAndIndicesAreInverse) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor t = tf.ones({2, 3, 4});
  size_t memo[kTensorDimensionLimit];
  memoizeTrailingDims(t, memo);
  for (size_t i = 0; i < 24; ++i) {
    size_t coordinate[3];
    indexToCoordinate(t, i, coordinate);
    EXPECT_EQ(coordinateToIndex(t, coordinate), i);
    EXPECT_EQ(coordinateToIndexWithTrailingDimsMemo(t, coordinate, memo), i);
  }
  EXPECT_EQ(getLeadingDims(t, 2), 6u);
  EXPECT_EQ(getTrailingDims(t, 0), 12u);
  EXPECT_EQ(getTrailingDims(t, -1), 24u);
}

TEST(ExtractScalarTensor, NumberMustFit) {
  TensorFactory<ScalarType::Long> longs;
  int8_t narrow = 0;
  uint32_t positive = 0;
  uint64_t widest = 0;
  EXPECT_TRUE(extract_scalar_tensor(longs.make({1}, {-128}), &narrow));
  EXPECT_EQ(narrow, -128);
  EXPECT_FALSE(extract_scalar_tensor(longs.make({1}, {128}), &narrow));
  EXPECT_FALSE(extract_scalar_tensor(longs.make({}, {-1}), &positive));
  EXPECT_FALSE(extract_scalar_tensor(longs.make({}, {-1}), &widest));
  EXPECT_FALSE(extract_scalar_tensor(longs.ones({2}), &narrow));
}

TEST(ExtractScalarTensor, TypesAreConvertedOnlyUpwards) {
  TensorFactory<ScalarType::Double> doubles;
  TensorFactory<ScalarType::Bool> bools;
  float single = 0;
  int64_t integer = 0;
  bool flag = false;
  EXPECT_TRUE(extract_scalar_tensor(doubles.make({1}, {0.5}), &single));
  EXPECT_EQ(single, 0.5f);
  EXPECT_FALSE(extract_scalar_tensor(doubles.make({1}, {1e300}), &single));
  EXPECT_TRUE(
      extract_scalar_tensor(doubles.make({1}, {std::numeric_limits<double>::infinity()}), &single));
  EXPECT_FALSE(extract_scalar_tensor(doubles.make({1}, {1.0}), &integer));
  EXPECT_TRUE(extract_scalar_tensor(bools.make({1}, {true}), &flag));
  Tensor odd = bools.make({1}, {false});
  *static_cast<uint8_t*>(odd.mutable_data_ptr()) = 2;  // as a file may have it
  flag = false;
  EXPECT_TRUE(extract_scalar_tensor(odd, &flag));
  EXPECT_TRUE(flag);
  EXPECT_TRUE(flag);
  EXPECT_FALSE(extract_scalar_tensor(doubles.make({1}, {1.0}), &flag));
}

TEST(TensorUtil, MemoryOfATensorIsResizedToo) {
  int32_t sizes[] = {3, 2};
  uint8_t dim_order[] = {0, 1};
  int32_t strides[] = {2, 1};
  float data[6] = {};
  aten::TensorImpl impl(ScalarType::Float, 2, sizes, data, dim_order, strides,
                        TensorShapeDynamism::DYNAMIC_BOUND);
  const int32_t smaller[] = {1, 4};
  EXPECT_EQ(internal::resize_tensor_impl(&impl, smaller), Error::Ok);
  EXPECT_EQ(impl.size(1), 4);
  EXPECT_EQ(strides[0], 4);
  const int32_t larger[] = {2, 4};
  EXPECT_EQ(torch::executor::internal::resize_tensor_impl(&impl, larger), Error::NotSupported);
}

struct Context {
  Error error = Error::Ok;
  void fail(Error e) { error = e; }
};

int checked(Context& ctx, int value) {
  ET_KERNEL_CHECK(ctx, value > 0, InvalidArgument, -1);
  ET_KERNEL_CHECK_MSG(ctx, value < 10, NotSupported, -2, "value is %d", value);
  return value;
}

TEST(KernelCheck, FailsTheContextAndReturns) {
  Context ctx;
  EXPECT_EQ(checked(ctx, 5), 5);
  EXPECT_EQ(ctx.error, Error::Ok);
  EXPECT_EQ(checked(ctx, 0), -1);
  EXPECT_EQ(ctx.error, Error::InvalidArgument);
  EXPECT_EQ(checked(ctx, 10), -2);
  EXPECT_EQ(ctx.error, Error::NotSupported);
}

TEST(TensorData, IsSetSharedCopiedAndTakenAway) {
  testing::TensorFactory<ScalarType::Float> tf;
  const Tensor a = tf.make({2}, {1, 2}), b = tf.zeros({2}), longer = tf.zeros({3});
  EXPECT_EQ(internal::copy_tensor_data(b, a), Error::Ok);
  EXPECT_EQ(b.const_data_ptr<float>()[1], 2);
  EXPECT_EQ(internal::copy_tensor_data(longer, a), Error::InvalidArgument);
  EXPECT_EQ(internal::share_tensor_data(b, a), Error::Ok);
  EXPECT_EQ(b.const_data_ptr(), a.const_data_ptr());
  EXPECT_EQ(internal::share_tensor_data(longer, a), Error::InvalidArgument);
  internal::reset_data_ptr(b);
  EXPECT_EQ(b.const_data_ptr(), nullptr);
  EXPECT_EQ(internal::copy_tensor_data(b, a), Error::InvalidArgument);
  float memory[2];
  EXPECT_EQ(internal::set_tensor_data(b, memory, 4), Error::InvalidArgument);
  EXPECT_EQ(internal::set_tensor_data(b, memory, 8), Error::Ok);
  EXPECT_EQ(b.const_data_ptr(), memory);
}

bool is_small(int x) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(x < 9, "x is %d", x);
  ET_LOG_MSG_AND_RETURN_IF_FALSE(x > -9, "x is negative");
  return true;
}

TEST(TensorUtil, ChecksWithAMessageReturnFalse) {
  EXPECT_TRUE(is_small(1));
  EXPECT_FALSE(is_small(9) || is_small(-9));
}

}  // namespace
}  // namespace executorch::runtime
