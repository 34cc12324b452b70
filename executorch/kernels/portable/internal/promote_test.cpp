#include <executorch/kernels/portable/internal/promote.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <gtest/gtest.h>

using executorch::aten::Scalar;
using executorch::aten::ScalarType;
using executorch::runtime::testing::TensorFactory;
using namespace torch::executor::native::internal;

TEST(Promotion, JoinsTensorsOfOneCategory) {
  TensorFactory<ScalarType::Byte> bytes;
  TensorFactory<ScalarType::Char> chars;
  TensorFactory<ScalarType::Half> halves;
  TensorFactory<ScalarType::BFloat16> bfloats;
  EXPECT_EQ(Promotion().add(bytes.zeros({1})).add(chars.zeros({1})).result(), ScalarType::Short);
  EXPECT_EQ(Promotion().add(halves.zeros({1})).add(bfloats.zeros({1})).result(), ScalarType::Float);
}

TEST(Promotion, LetsATensorWithDimsBeatAZeroDimTensorOfItsCategory) {
  TensorFactory<ScalarType::Char> chars;
  TensorFactory<ScalarType::Long> longs;
  TensorFactory<ScalarType::Double> doubles;
  EXPECT_EQ(Promotion().add(chars.zeros({1})).add(longs.zeros({})).result(), ScalarType::Char);
  EXPECT_EQ(Promotion().add(chars.zeros({1})).add(doubles.zeros({})).result(), ScalarType::Double);
}

TEST(Promotion, CountsNumbersOnlyWhenTheirCategoryIsHigher) {
  TensorFactory<ScalarType::Bool> bools;
  TensorFactory<ScalarType::Char> chars;
  TensorFactory<ScalarType::Half> halves;
  EXPECT_EQ(Promotion().add(chars.zeros({1})).add(Scalar(int64_t{1})).result(), ScalarType::Char);
  EXPECT_EQ(Promotion().add(chars.zeros({1})).add(Scalar(1.5)).result(), ScalarType::Float);
  EXPECT_EQ(Promotion().add(halves.zeros({1})).add(Scalar(1.5)).result(), ScalarType::Half);
  EXPECT_EQ(Promotion().add(bools.zeros({})).add(Scalar(int64_t{1})).result(), ScalarType::Long);
  EXPECT_EQ(Promotion().add(bools.zeros({1})).add(Scalar(true)).result(), ScalarType::Bool);
}

TEST(CanStore, RefusesToLoseTheCategory) {
  EXPECT_TRUE(can_store(ScalarType::Double, ScalarType::Half));
  EXPECT_TRUE(can_store(ScalarType::Long, ScalarType::Char));
  EXPECT_TRUE(can_store(ScalarType::Bool, ScalarType::Float));
  EXPECT_FALSE(can_store(ScalarType::Float, ScalarType::Long));
  EXPECT_FALSE(can_store(ScalarType::Long, ScalarType::Bool));
}
