#include <executorch/runtime/core/evalue.h>

#include <memory>

#include <gtest/gtest.h>

#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using aten::Tensor;

TEST(EValue, NumbersKeepTheirKind) {
  EXPECT_TRUE(EValue().isNone());
  EXPECT_EQ(EValue(int64_t{3}).toInt(), 3);
  EXPECT_EQ(EValue(3).toInt(), 3);
  EXPECT_EQ(EValue(2.5).toDouble(), 2.5);
  EXPECT_TRUE(EValue(true).isBool());
  EXPECT_EQ(EValue(aten::Scalar(7)).tag, Tag::Int);
  EXPECT_EQ(EValue(aten::Scalar(true)).tag, Tag::Bool);
  EXPECT_EQ(EValue(aten::Scalar(0.5)).toScalar().to<double>(), 0.5);
}

TEST(EValue, WrongTypeIsAnErrorNotAGuess) {
  const EValue number(int64_t{3});
  EXPECT_EQ(number.tryToDouble().error(), Error::InvalidType);
  EXPECT_EQ(number.tryToTensor().error(), Error::InvalidType);
  EXPECT_EQ(number.tryToIntList().error(), Error::InvalidType);
  EXPECT_EQ(EValue().tryToScalar().error(), Error::InvalidType);
  EXPECT_EQ(EValue(1.0).tryTo<ScalarType>().error(), Error::InvalidType);
  EXPECT_EQ(*number.tryTo<int64_t>(), 3);
}

TEST(EValueDeathTest, AbortingAccessorNamesBothTypes) {
  EXPECT_DEATH(EValue(2.5).toInt(), "Double, not Int");
  const std::shared_ptr<Tensor> null;
  EXPECT_DEATH(EValue{null}, "null pointer");
}

TEST(EValue, TensorIsHeldByHandle) {
  testing::TensorFactory<ScalarType::Float> tf;
  Tensor t = tf.ones({2});
  EValue value(t);
  const EValue copy = value;
  EXPECT_EQ(copy.toTensor().unsafeGetTensorImpl(), t.unsafeGetTensorImpl());
  EXPECT_EQ(&value.to<Tensor>(), &value.payload.as_tensor);
  EValue moved = std::move(value);
  EXPECT_TRUE(moved.isTensor());
  EXPECT_TRUE(value.isNone());
  moved = EValue(2.0);
  EXPECT_EQ(moved.toDouble(), 2.0);
  EXPECT_TRUE(EValue(std::make_shared<Tensor>(t)).isTensor());
}

TEST(EValue, NoneIsAnAbsentOptional) {
  EXPECT_FALSE(EValue().toOptional<int64_t>().has_value());
  EXPECT_EQ(*EValue(5).to<std::optional<int64_t>>(), 5);
  EXPECT_FALSE((*EValue().tryToOptional<double>()).has_value());
  EXPECT_EQ(EValue(5).tryToOptional<double>().error(), Error::InvalidType);
}

TEST(EValue, StringAndPlainListsAreViews) {
  aten::ArrayRef<char> text("abc", 3);
  EXPECT_EQ(EValue(&text).toString(), "abc");
  const double numbers[] = {1.0, 2.0};
  aten::ArrayRef<double> doubles(numbers);
  EXPECT_EQ(EValue(&doubles).toDoubleList().data(), numbers);
  const bool flags[] = {true, false};
  aten::ArrayRef<bool> bools(flags);
  EXPECT_TRUE(EValue(&bools).toBoolList()[0]);
}

TEST(EValue, NullPointersOfAPayloadAreErrors) {
  EValue value;
  value.payload.copyable_union.as_string_ptr = nullptr;
  value.tag = Tag::String;
  EXPECT_EQ(value.tryToString().error(), Error::InvalidState);
  value.payload.copyable_union.as_bool_list_ptr = nullptr;
  value.tag = Tag::ListBool;
  EXPECT_EQ(value.tryToBoolList().error(), Error::InvalidState);
  value.payload.copyable_union.as_tensor_list_ptr = nullptr;
  value.tag = Tag::ListTensor;
  EXPECT_EQ(value.tryTo<aten::TensorList>().error(), Error::InvalidState);
  EXPECT_DEATH(value.toTensorList(), "");
  EXPECT_EQ(EValue(aten::Tensor(nullptr)).tryToTensor().error(), Error::InvalidState);
}

TEST(BoxedEvalueList, GathersPresentValues) {
  EValue a(1);
  EValue b(2);
  EValue* wrapped[] = {&a, &b};
  int64_t unwrapped[2];
  BoxedEvalueList<int64_t> list(wrapped, unwrapped, 2);
  EValue value(&list);
  EXPECT_EQ(value.toIntList()[1], 2);
  b = EValue(20);
  EXPECT_EQ(value.toIntList()[1], 20);
}

TEST(BoxedEvalueList, BadElementsAreErrors) {
  EValue a(1);
  EValue wrong(1.5);
  int64_t unwrapped[2];
  EValue* empty_slot[] = {&a, nullptr};
  BoxedEvalueList<int64_t> with_empty(empty_slot, unwrapped, 2);
  EXPECT_EQ(EValue(&with_empty).tryToIntList().error(), Error::InvalidState);
  EValue* wrong_type[] = {&a, &wrong};
  BoxedEvalueList<int64_t> with_wrong(wrong_type, unwrapped, 2);
  EXPECT_EQ(EValue(&with_wrong).tryToIntList().error(), Error::InvalidType);
}

TEST(BoxedEvalueList, OptionalTensorMayBeAbsentInTwoWays) {
  testing::TensorFactory<ScalarType::Float> tf;
  EValue tensor(tf.ones({1}));
  EValue none;
  EValue* wrapped[] = {&tensor, nullptr, &none};
  alignas(std::optional<Tensor>) unsigned char room[3 * sizeof(std::optional<Tensor>)];
  BoxedEvalueList<std::optional<Tensor>> list(wrapped,
                                              reinterpret_cast<std::optional<Tensor>*>(room), 3);
  const auto tensors = EValue(&list).toListOptionalTensor();
  EXPECT_TRUE(tensors[0].has_value());
  EXPECT_FALSE(tensors[1].has_value());
  EXPECT_FALSE(tensors[2].has_value());
  list.destroy_elements();

  EValue* as_tensors[] = {&tensor, nullptr};
  BoxedEvalueList<Tensor> strict(as_tensors, reinterpret_cast<Tensor*>(room), 2);
  EXPECT_EQ(EValue(&strict).tryToTensorList().error(), Error::InvalidState);
}

}  // namespace
}  // namespace executorch::runtime
