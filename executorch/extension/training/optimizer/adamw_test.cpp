// Expected values are those of torch.optim.AdamW.
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/training/optimizer/adamw.h>
#include <gtest/gtest.h>

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
float first(const TensorPtr& tensor) {
  return static_cast<float>(tensor->const_data_ptr<T>()[0]);
}

TEST(AdamW, StateAndOptionsSayWhatTheyWereGiven) {
  const TensorPtr average = make_tensor_ptr(Floats{1}), squares = make_tensor_ptr(Floats{2});
  AdamWParamState state(average, squares);
  EXPECT_EQ(state.exp_avg().const_data_ptr(), average->const_data_ptr());
  EXPECT_EQ(state.exp_avg_sq().const_data_ptr(), squares->const_data_ptr());
  EXPECT_EQ(state.step_count(), 0);
  state.increment_step_count();
  EXPECT_EQ(state.step_count(), 1);
  const AdamWOptions plain;
  EXPECT_EQ(plain.lr(), 1e-3);
  EXPECT_EQ(plain.beta1(), 0.9);
  EXPECT_EQ(plain.beta2(), 0.999);
  EXPECT_EQ(plain.eps(), 1e-8);
  EXPECT_EQ(plain.weight_decay(), 1e-2);
  const auto copy = AdamWOptions(1, 2, 3, 4, 5).clone();
  EXPECT_EQ(copy->beta2(), 3);
  EXPECT_EQ(copy->weight_decay(), 5);
}

template <typename T>
void expect_steps(ScalarType type, double decay, float expected, float tolerance) {
  const TensorPtr p = make_tensor_ptr({1}, Floats{1}, type);
  AdamW adamw(Named{{"p", *p}}, AdamWOptions(0.125, 0.75, 0.875, 1e-4, decay));
  for (const float g : {1.0f, -0.5f, 0.25f, -3.0f, 1.5f, 0.0f, 2.0f}) {
    const TensorPtr gradient = make_tensor_ptr({1}, Floats{g}, type);
    ASSERT_EQ(adamw.step({{"p", *gradient}}), Error::Ok);
  }
  EXPECT_NEAR(first<T>(p), expected, tolerance) << runtime::toString(type);
}

TEST(AdamW, StepsAsEagerDoes) {
  expect_steps<float>(ScalarType::Float, 0, 0.86826459f, 1e-6f);
  expect_steps<float>(ScalarType::Float, 0.5, 0.54527116f, 1e-6f);
  // Only the parameter is rounded, once a step.
  expect_steps<aten::Half>(ScalarType::Half, 0.5, 0.54527116f, 7 * 5e-4f);
  expect_steps<aten::BFloat16>(ScalarType::BFloat16, 0.5, 0.54527116f, 7 * 4e-3f);
}

TEST(AdamW, DecayIsNoPartOfTheGradient) {
  const TensorPtr p = make_tensor_ptr(Floats{1}), zero = make_tensor_ptr(Floats{0});
  AdamW adamw(Named{{"p", *p}}, AdamWOptions(0.25, 0.9, 0.999, 1e-8, 0.5));
  ASSERT_EQ(adamw.step({{"p", *zero}}), Error::Ok);
  EXPECT_EQ(first(p), 0.875f);
}

TEST(AdamW, SmallGradientsOfHalfPrecisionAreNotLostInTheirSquares) {
  const TensorPtr p = make_tensor_ptr({1}, Floats{0}, ScalarType::Half),
                  g = make_tensor_ptr({1}, Floats{1e-4f}, ScalarType::Half);
  AdamW adamw(Named{{"p", *p}}, AdamWOptions(0.125, 0.9, 0.999, 1e-8, 0));
  ASSERT_EQ(adamw.step({{"p", *g}}), Error::Ok);
  EXPECT_NEAR(first<aten::Half>(p), -0.125f, 1e-3f);
}

TEST(AdamW, GroupsAndParametersGoTheirOwnWays) {
  const TensorPtr a = make_tensor_ptr(Floats{1}), b = make_tensor_ptr(Floats{1}),
                  g = make_tensor_ptr(Floats{1}), empty = make_tensor_ptr({0}, Floats{});
  AdamW adamw(std::vector<AdamWParamGroup>{AdamWParamGroup(Named{{"a", *a}, {"e", *empty}})},
              AdamWOptions(0.5, 0.9, 0.999, 1e-8, 0));
  adamw.add_param_group(
      AdamWParamGroup(Named{{"b", *b}}, std::make_unique<AdamWOptions>(0.25, 0.9, 0.999, 1e-8, 0)));
  // The first step is of the length lr; no gradient, no step.
  ASSERT_EQ(adamw.step({{"a", *g}, {"e", *empty}, {"other", *g}}), Error::Ok);
  EXPECT_NEAR(first(a), 0.5f, 1e-6f);
  EXPECT_EQ(first(b), 1.0f);
  ASSERT_EQ(adamw.step({{"b", *g}}), Error::Ok);
  EXPECT_NEAR(first(b), 0.75f, 1e-6f);
}

TEST(AdamW, TakesTensorsMadeWithoutDimOrderOrStrides) {
  aten::SizesType sizes[] = {2};
  float data[] = {1, 1}, ones[] = {1, 1};
  aten::TensorImpl p(ScalarType::Float, 1, sizes, data), g(ScalarType::Float, 1, sizes, ones);
  AdamW adamw(Named{{"p", Tensor(&p)}}, AdamWOptions(0.5, 0.9, 0.999, 1e-8, 0));
  ASSERT_EQ(adamw.step({{"p", Tensor(&g)}}), Error::Ok);
  EXPECT_NEAR(data[1], 0.5f, 1e-6f);
}

TEST(AdamW, AnErrorChangesNothing) {
  TensorPtr a = make_tensor_ptr(Floats{1, 1}), z = make_tensor_ptr(Floats{1, 1});
  const TensorPtr g = make_tensor_ptr(Floats{1, 1}), longer = make_tensor_ptr(Floats{1, 1, 1}),
                  half = make_tensor_ptr({2}, Floats{1, 1}, ScalarType::Half),
                  wide = make_tensor_ptr({2}, std::vector<double>{1, 1}),
                  whole = make_tensor_ptr({2}, std::vector<int32_t>{1, 1});
  AdamW adamw(Named{{"a", *a}, {"z", *z}}, AdamWOptions(0.5, 0.9, 0.999, 1e-8, 0));
  EXPECT_EQ(adamw.step({{"a", *g}, {"z", *longer}}), Error::InvalidArgument);
  EXPECT_EQ(adamw.step({{"a", *g}, {"z", *half}}), Error::InvalidArgument);
  EXPECT_EQ(first(a), 1.0f);
  ASSERT_EQ(adamw.step({{"a", *g}, {"z", *g}}), Error::Ok);  // still the first
  EXPECT_NEAR(first(a), 0.5f, 1e-6f);
  EXPECT_EQ(AdamW(Named{{"p", *wide}}, AdamWOptions()).step({{"p", *wide}}),
            Error::InvalidArgument);
  EXPECT_EQ(AdamW(Named{{"p", *whole}}, AdamWOptions()).step({{"p", *whole}}), Error::NotSupported);
  // A parameter that shrinks has lost its averages.
  ASSERT_EQ(resize_tensor_ptr(z, {1}), Error::Ok);
  const TensorPtr one = make_tensor_ptr(Floats{1});
  EXPECT_EQ(adamw.step({{"z", *one}}), Error::InvalidState);
}

}  // namespace
}  // namespace executorch::extension::training::optimizer
