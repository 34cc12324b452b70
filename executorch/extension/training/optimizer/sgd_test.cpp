// What it computes is compared with torch.optim.SGD in training_test.py; here are its edges.
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/training/optimizer/sgd.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

// What is experimental says so by a warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training::optimizer {
namespace {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using Floats = std::vector<float>;
using Named = std::map<std::string_view, Tensor>;

template <typename T = float>
std::vector<T> items(const TensorPtr& tensor) {
  const T* const data = tensor->const_data_ptr<T>();
  return {data, data + tensor->numel()};
}

TEST(SGD, StateAndOptionsSayWhatTheyWereGiven) {
  const TensorPtr buffer = make_tensor_ptr(Floats{1, 2});
  SGDParamState state(*buffer);
  EXPECT_EQ(state.momentum_buffer().const_data_ptr(), buffer->const_data_ptr());
  const SGDOptions plain(0.1), full(0.1, 1.0, 2.0, 3.0, true);
  EXPECT_EQ(plain.lr(), 0.1);
  EXPECT_EQ(plain.momentum() + plain.dampening() + plain.weight_decay(), 0);
  EXPECT_FALSE(plain.nesterov());
  const auto copy = full.clone();
  EXPECT_EQ(copy->momentum(), 1.0);
  EXPECT_EQ(copy->dampening(), 2.0);
  EXPECT_EQ(copy->weight_decay(), 3.0);
  EXPECT_TRUE(copy->nesterov());
  SGDParamGroup group({});
  EXPECT_FALSE(group.has_options());
  group.set_options(full.clone());
  const SGDParamGroup other(group);
  EXPECT_NE(&other.options(), &group.options());
  EXPECT_EQ(other.options().weight_decay(), 3.0);
}

TEST(SGD, GoesAgainstTheGradient) {
  const TensorPtr p = make_tensor_ptr(Floats{1}), g = make_tensor_ptr(Floats{-1});
  SGD sgd(Named{{"p", *p}}, SGDOptions(0.125));
  for (int i = 0; i < 8; ++i) ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  EXPECT_EQ(items(p), (Floats{2}));
  EXPECT_EQ(items(g), (Floats{-1}));
}

TEST(SGD, GroupsHaveOptionsOfTheirOwn) {
  const TensorPtr a = make_tensor_ptr(Floats{1}), b = make_tensor_ptr(Floats{1}),
                  c = make_tensor_ptr(Floats{1}), g = make_tensor_ptr(Floats{1});
  const std::vector<SGDParamGroup> groups = {
      SGDParamGroup(Named{{"a", *a}}),
      SGDParamGroup(Named{{"b", *b}}, std::make_unique<SGDOptions>(0.25))};
  SGD sgd(groups, SGDOptions(0.5));
  sgd.add_param_group(SGDParamGroup(Named{{"c", *c}}));
  // No gradient, no step; a gradient without a parameter is of no concern.
  ASSERT_EQ(sgd.step({{"a", *g}, {"b", *g}, {"d", *g}}), Error::Ok);
  EXPECT_EQ(items(a), (Floats{0.5}));
  EXPECT_EQ(items(b), (Floats{0.75}));
  EXPECT_EQ(items(c), (Floats{1}));
}

TEST(SGD, MomentumBeginsWithTheFirstGradientWhateverTheDampening) {
  const TensorPtr p = make_tensor_ptr(Floats{0}), g = make_tensor_ptr(Floats{1});
  SGD sgd(Named{{"p", *p}}, SGDOptions(1, 0.5, 0.75));
  ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  EXPECT_EQ(items(p), (Floats{-1}));
  ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  EXPECT_EQ(items(p), (Floats{-1.75}));  // 0.5 * 1 + 0.25 * 1
}

template <typename T>
void expect_step(ScalarType type) {
  const TensorPtr p = make_tensor_ptr({2}, Floats{1, 2}, type),
                  g = make_tensor_ptr({2}, Floats{2, -2}, type);
  SGD sgd(Named{{"p", *p}}, SGDOptions(0.25, 0.5, 0, 0.5, true));
  ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  // g + p / 2 is 2.5 and -1; with its own momentum 3.75 and -1.5.
  EXPECT_EQ(static_cast<float>(items<T>(p)[0]), 0.0625f);
  EXPECT_EQ(static_cast<float>(items<T>(p)[1]), 2.375f);
}

TEST(SGD, TakesAllTypesOfFloatingPoint) {
  expect_step<float>(ScalarType::Float);
  expect_step<double>(ScalarType::Double);
  expect_step<aten::Half>(ScalarType::Half);
  expect_step<aten::BFloat16>(ScalarType::BFloat16);
}

TEST(SGD, TakesEmptyTensorsAndNumbers) {
  const TensorPtr empty = make_tensor_ptr({0, 3}, Floats{}),
                  number = make_tensor_ptr({}, Floats{1});
  SGD sgd(Named{{"empty", *empty}, {"number", *number}}, SGDOptions(1, 0.9));
  ASSERT_EQ(sgd.step({{"empty", *empty}, {"number", *number}}), Error::Ok);
  EXPECT_EQ(items(number), (Floats{0}));
  SGD nothing(Named{}, SGDOptions(1));
  EXPECT_EQ(nothing.step({{"number", *number}}), Error::Ok);
}

TEST(SGD, NeedsNoNumberToBeFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const TensorPtr p = make_tensor_ptr(Floats{infinity, 1}), g = make_tensor_ptr(Floats{1, NAN});
  SGD sgd(Named{{"p", *p}}, SGDOptions(0.5));
  ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  EXPECT_EQ(items(p)[0], infinity);
  EXPECT_TRUE(std::isnan(items(p)[1]));
}

TEST(SGD, AnErrorChangesNothing) {
  const TensorPtr a = make_tensor_ptr(Floats{1, 1}), z = make_tensor_ptr(Floats{1, 1});
  const TensorPtr g = make_tensor_ptr(Floats{1, 1});
  SGD sgd(Named{{"a", *a}, {"z", *z}}, SGDOptions(0.5, 0.5, 0.5));
  const TensorPtr longer = make_tensor_ptr(Floats{1, 1, 1}),
                  square = make_tensor_ptr({1, 2}, Floats{1, 1}),
                  wide = make_tensor_ptr({2}, std::vector<double>{1, 1});
  const TensorPtr none = from_blob(nullptr, {2});
  EXPECT_EQ(sgd.step({{"a", *g}, {"z", *longer}}), Error::InvalidArgument);
  EXPECT_EQ(sgd.step({{"a", *g}, {"z", *square}}), Error::InvalidArgument);
  EXPECT_EQ(sgd.step({{"a", *g}, {"z", *wide}}), Error::InvalidArgument);
  EXPECT_EQ(sgd.step({{"a", *g}, {"z", *none}}), Error::InvalidState);
  EXPECT_EQ(sgd.step({{"a", *g}, {"z", Tensor(nullptr)}}), Error::InvalidArgument);
  EXPECT_EQ(items(a), (Floats{1, 1}));
  ASSERT_EQ(sgd.step({{"a", *g}, {"z", *g}}), Error::Ok);  // still the first
  EXPECT_EQ(items(a), (Floats{0.5, 0.5}));
  EXPECT_EQ(items(z), (Floats{0.5, 0.5}));
}

TEST(SGD, TakesTensorsMadeWithoutDimOrderOrStrides) {
  aten::SizesType sizes[] = {2, 2};
  aten::DimOrderType order[] = {0, 1}, by_column[] = {1, 0};
  float data[] = {1, 2, 3, 4}, ones[] = {1, 1, 1, 1};
  aten::TensorImpl p(ScalarType::Float, 2, sizes, data),
      g(ScalarType::Float, 2, sizes, ones, order),
      columns(ScalarType::Float, 2, sizes, ones, by_column);
  SGD sgd(Named{{"p", Tensor(&p)}}, SGDOptions(0.5, 0.5));
  ASSERT_EQ(sgd.step({{"p", Tensor(&g)}}), Error::Ok);
  EXPECT_EQ(data[3], 3.5f);
  EXPECT_EQ(sgd.step({{"p", Tensor(&columns)}}), Error::InvalidArgument);
  const TensorPtr whole = make_tensor_ptr({2, 2}, Floats{1, 1, 1, 1});
  EXPECT_EQ(sgd.step({{"p", *whole}}), Error::Ok);
}

TEST(SGD, RefusesOtherLayoutsTypesAndSizes) {
  const Floats four{1, 2, 3, 4};
  const TensorPtr rows = make_tensor_ptr({2, 2}, four),
                  columns = make_tensor_ptr({2, 2}, four, {1, 0});
  EXPECT_EQ(SGD(Named{{"p", *rows}}, SGDOptions(1)).step({{"p", *columns}}),
            Error::InvalidArgument);
  // Where a dimension is 1, its stride leads nowhere.
  const TensorPtr row = make_tensor_ptr({1, 2}, Floats{1, 2}),
                  other = make_tensor_ptr({1, 2}, Floats{1, 2}, {1, 0});
  EXPECT_EQ(SGD(Named{{"p", *row}}, SGDOptions(1)).step({{"p", *other}}), Error::Ok);
  const TensorPtr integers = make_tensor_ptr({2}, std::vector<int32_t>{1, 2});
  EXPECT_EQ(SGD(Named{{"p", *integers}}, SGDOptions(1)).step({{"p", *integers}}),
            Error::NotSupported);
  const TensorPtr none = from_blob(nullptr, {2}), two = make_tensor_ptr(Floats{1, 1});
  EXPECT_EQ(SGD(Named{{"p", *none}}, SGDOptions(1)).step({{"p", *two}}), Error::InvalidState);
  // A parameter that shrinks has lost its momentum.
  TensorPtr p = make_tensor_ptr(Floats{1, 1}), g = make_tensor_ptr(Floats{1, 1});
  SGD sgd(Named{{"p", *p}}, SGDOptions(1, 0.5));
  ASSERT_EQ(sgd.step({{"p", *g}}), Error::Ok);
  ASSERT_EQ(resize_tensor_ptr(p, {1}), Error::Ok);
  ASSERT_EQ(resize_tensor_ptr(g, {1}), Error::Ok);
  EXPECT_EQ(sgd.step({{"p", *g}}), Error::InvalidState);
}

}  // namespace
}  // namespace executorch::extension::training::optimizer
