#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>

namespace executorch::runtime::testing {
namespace {

using aten::ScalarType;
using aten::Tensor;

TEST(TensorFactory, ChannelsLastKeepsValuesAndMovesThem) {
  TensorFactory<ScalarType::Int> tf;
  const Tensor contiguous = tf.make({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor last = tf.channels_last_like(contiguous);
  EXPECT_TENSOR_EQ(last, tf.make_channels_last({1, 2, 1, 3}, {1, 4, 2, 5, 3, 6}));
  EXPECT_TENSOR_NE(last, contiguous);
  EXPECT_EQ(last.strides()[1], 1);
  EXPECT_TENSOR_EQ(tf.ones_like(last), tf.ones_channels_last({1, 2, 1, 3}));
}

TEST(TensorFactory, StridesChooseTheDimOrder) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor t = tf.make({2, 3}, {1, 2, 3, 4, 5, 6}, {1, 2});
  EXPECT_EQ(t.dim_order()[0], 1);
  EXPECT_EQ(t.strides()[1], 2);
}

TEST(TensorFactory, StridesAreKept) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor t = tf.make({1, 3}, {1, 2, 3}, {1, 1});
  EXPECT_EQ(t.dim_order()[0], 1);
  EXPECT_EQ(t.strides()[0], 1);
  EXPECT_EQ(tf.make({3, 0}, {}, {1, 3}).strides()[1], 3);
}

TEST(TensorFactory, OrdersWithTheSameStridesAreEqual) {
  aten::SizesType sizes[] = {1, 3};
  aten::DimOrderType order[] = {0, 1};
  aten::StridesType strides[] = {1, 1};
  float data[] = {1, 2, 3};
  aten::TensorImpl impl(ScalarType::Float, 2, sizes, data, order, strides);
  TensorFactory<ScalarType::Float> tf;
  EXPECT_TENSOR_EQ(tf.make({1, 3}, {1, 2, 3}, {1, 1}), Tensor(&impl));
  EXPECT_TENSOR_NE(tf.make({1, 3}, {1, 2, 4}, {1, 1}), Tensor(&impl));
}

TEST(TensorFactory, StridesOfTensorsWithGapsOrSharedElementsAreRefused) {
  TensorFactory<ScalarType::Float> tf;
  EXPECT_DEATH(tf.make({2, 2}, {1, 2, 3, 4}, {1, 4}), "dense");
  EXPECT_DEATH(tf.make({2, 2}, {1, 2, 3, 4}, {1, 1}), "dense");
  EXPECT_DEATH(tf.make({2, 2}, {1, 2, 3, 4}, {0, 1}), "dense");
  EXPECT_DEATH(tf.make({}, {1}, {1}), "1 strides for 0 sizes");
}

TEST(TensorFactory, ElementsAreWrittenAsPlainIntegers) {
  TensorFactory<ScalarType::Bool> bools;
  EXPECT_TENSOR_EQ(bools.make({3}, {0, 1, 7}), bools.make({3}, {0, 1, 1}));
  TensorFactory<ScalarType::QInt8> tq;
  EXPECT_EQ(tq.full({1}, -3).const_data_ptr<etensor::qint8>()->val_, -3);
  TensorFactory<ScalarType::Bits16> tb;
  EXPECT_EQ(tb.full({1}, 300).const_data_ptr<etensor::bits16>()->val_, 300);
}

TEST(TensorFactory, TensorsMayHaveMoreDimensionsThanKernelsTake) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor t = tf.ones(std::vector<int32_t>(kTensorDimensionLimit + 1, 1));
  EXPECT_EQ(t.dim(), static_cast<ssize_t>(kTensorDimensionLimit) + 1);
  EXPECT_DEATH(tf.make_with_dimorder({2, 2}, {1, 2, 3, 4}, {1, 1}), "invalid dim order");
}

TEST(TensorMatchers, ToleranceIsOnlyForFloatingPoint) {
  TensorFactory<ScalarType::Float> tf;
  TensorFactory<ScalarType::Int> ti;
  EXPECT_TENSOR_CLOSE(tf.make({2}, {1.0f, NAN}), tf.make({2}, {1.000001f, NAN}));
  EXPECT_TENSOR_NOT_CLOSE(tf.make({1}, {1.0f}), tf.make({1}, {1.1f}));
  EXPECT_TENSOR_CLOSE_WITH_TOL(tf.make({1}, {1.0f}), tf.make({1}, {1.1f}), 0.2, 0.0);
  EXPECT_TENSOR_NOT_CLOSE(ti.make({1}, {1}), ti.make({1}, {2}));
  EXPECT_TENSOR_NE(tf.make({1}, {INFINITY}), tf.make({1}, {-INFINITY}));
}

TEST(TensorMatchers, ShapeAndTypeMatter) {
  TensorFactory<ScalarType::Float> tf;
  TensorFactory<ScalarType::Double> td;
  EXPECT_TENSOR_NE(tf.ones({2, 3}), tf.ones({3, 2}));
  EXPECT_TENSOR_DATA_EQ(tf.ones({2, 3}), tf.ones({3, 2}));
  EXPECT_TENSOR_NE(tf.ones({2}), td.ones({2}));
}

TEST(TensorMatchers, WhatATensorLacksOfItsLayoutFollowsFromTheRest) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor rows = tf.make({2, 2}, {1, 2, 3, 4}),
               columns = tf.make_with_dimorder({2, 2}, {1, 2, 3, 4}, {1, 0});
  int32_t sizes[] = {2, 2};
  uint8_t order[] = {1, 0};
  float data[] = {1, 2, 3, 4};
  aten::TensorImpl bare(ScalarType::Float, 2, sizes, data);
  aten::TensorImpl ordered(ScalarType::Float, 2, sizes, data, order);
  EXPECT_TENSOR_EQ(Tensor(&bare), rows);
  EXPECT_TENSOR_NE(Tensor(&bare), columns);
  EXPECT_TENSOR_EQ(Tensor(&ordered), columns);
  EXPECT_TENSOR_NE(Tensor(&ordered), rows);
  EXPECT_TENSOR_EQ(tf.full_like(Tensor(&bare), 5), tf.full({2, 2}, 5));
}

TEST(TensorMatchers, ListsAreComparedPairwise) {
  TensorListFactory<ScalarType::Float> lists;
  TensorFactory<ScalarType::Float> tf;
  const aten::TensorList list = lists.zeros_like({tf.ones({2}), tf.ones({3})});
  const std::vector<Tensor> expected = {tf.zeros({2}), tf.zeros({3})};
  EXPECT_TENSOR_LISTS_EQ(list, expected);
}

TEST(TensorPrinting, ShowsShapeTypeAndElements) {
  TensorFactory<ScalarType::Byte> tf;
  std::ostringstream text;
  text << tf.make({1, 2}, {7, 65});
  EXPECT_EQ(text.str(), "ETensor(sizes={1, 2}, dtype=Byte, data={7, 65})");
}

TEST(TensorPrinting, TypesHaveNames) {
  std::ostringstream text;
  text << ScalarType::BFloat16 << ' ' << static_cast<ScalarType>(127);
  EXPECT_EQ(text.str(), "BFloat16 Unknown(127)");
}

TEST(TensorMatchers, DifferencesAreFoundByEveryAssertion) {
  TensorFactory<ScalarType::Float> tf;
  const Tensor one = tf.make({2}, {1, 2});
  const Tensor other = tf.make({1, 2}, {1, 3});
  EXPECT_TENSOR_DATA_NE(one, other);
  EXPECT_TENSOR_DATA_NOT_CLOSE(one, other);
  EXPECT_TENSOR_DATA_NOT_CLOSE_WITH_TOL(one, other, 0.0, 0.5);
  EXPECT_TENSOR_DATA_CLOSE_WITH_TOL(one, other, 0.0, 1.0);
  EXPECT_TENSOR_NOT_CLOSE_WITH_TOL(one, tf.make({2}, {1, 3}), 0.0, 0.5);
  const std::vector<Tensor> list = {one, one};
  const std::vector<Tensor> changed = {one, other};
  EXPECT_TENSOR_LISTS_NE(list, changed);
  EXPECT_TENSOR_LISTS_NOT_CLOSE(list, changed);
  EXPECT_TENSOR_LISTS_NOT_CLOSE_WITH_TOL(list, changed, 0.0, 5.0);
}

}  // namespace
}  // namespace executorch::runtime::testing
