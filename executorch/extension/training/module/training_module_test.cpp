#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/training/module/training_module.h>
#include <executorch/extension/training/optimizer/sgd.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

// What is experimental says so by a warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training {
namespace {

using optimizer::SGD;
using optimizer::SGDOptions;
using runtime::Error;
using runtime::EValue;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;
using Values = std::function<std::vector<int32_t>(PlanBuilder&)>;

Values integers(std::vector<int64_t> items) {
  return [items](PlanBuilder& plan) {
    std::vector<int32_t> values;
    for (const int64_t item : items) values.push_back(plan.integer(item));
    return values;
  };
}

Values texts(std::vector<std::string> items) {
  return [items](PlanBuilder& plan) {
    std::vector<int32_t> values;
    for (const std::string& item : items) values.push_back(plan.text(item));
    return values;
  };
}

/// A program for training: the gradient of `w` (2 floats, 4 and 6) is w * x, as is the result
/// before it. What it says of itself is sound until a test changes it.
struct Program {
  Values gradients = integers({1});
  Values parameters = integers({2});
  Values names = texts({"w"});
  bool constant = false;
  bool external = false;
  bool number_for_gradient = false;

  std::vector<uint8_t> build() const {
    ProgramBuilder builder;
    const auto bytes = ProgramBuilder::bytes(std::vector<float>{4, 6});
    (constant ? builder.constants : builder.states).push_back(bytes);
    PlanBuilder& plan = builder.method();
    const int32_t x = plan.tensor({.sizes = {2}, .memory_id = 1});
    const int32_t w = plan.tensor({.sizes = {2},
                                   .memory_id = constant ? 0u : 1u,
                                   .offset = constant ? 0u : 16u,
                                   .data = external ? 0u : 1u,
                                   .name = "w",
                                   .external = external});
    const int32_t result = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 32});
    const int32_t gradient = plan.tensor({.sizes = {2}, .memory_id = 1, .offset = 48});
    plan.kernel("aten::mul.out", {w, x, result, result});
    plan.kernel("aten::mul.out", {w, x, gradient, gradient});
    plan.inputs = {x};
    plan.outputs = {result, number_for_gradient ? plan.integer(7) : gradient, w};
    plan.arenas = {0, 64};
    const std::pair<const char*, const Values*> methods[] = {
        {"__et_training_gradients_index_forward", &gradients},
        {"__et_training_parameters_index_forward", &parameters},
        {"__et_training_fqn_forward", &names}};
    for (const auto& [name, values] : methods) {
      if (*values == nullptr) continue;
      PlanBuilder& method = builder.method(name);
      method.outputs = (*values)(method);
    }
    return builder.build();
  }
};

std::unique_ptr<runtime::DataLoader> loader(const std::vector<uint8_t>& bytes) {
  return std::make_unique<BufferDataLoader>(bytes.data(), bytes.size());
}

std::vector<float> floats(const aten::Tensor& tensor) {
  const float* const data = tensor.const_data_ptr<float>();
  return {data, data + tensor.numel()};
}

using Floats = std::vector<float>;
const TensorPtr kOnes = make_tensor_ptr(Floats{1, 1});

TEST(TrainingModule, TrainsParametersThatStayInTheMethod) {
  const auto bytes = Program().build();
  const auto before = bytes;
  TrainingModule module(loader(bytes));
  const auto parameters = module.named_parameters("forward");
  ASSERT_EQ(parameters.error(), Error::Ok);
  ASSERT_EQ(parameters->size(), 1u);
  EXPECT_EQ(floats(parameters->at("w")), (Floats{4, 6}));
  SGD sgd(*parameters, SGDOptions(0.5));
  for (const float scale : {1.0f, 0.5f, 0.25f}) {
    const auto outputs = module.execute_forward_backward("forward", {kOnes});
    ASSERT_EQ(outputs.error(), Error::Ok);
    ASSERT_EQ(outputs->size(), 1u);
    EXPECT_EQ(floats(outputs->at(0).toTensor()), (Floats{4 * scale, 6 * scale}));
    const auto gradients = module.named_gradients("forward");
    ASSERT_EQ(gradients.error(), Error::Ok);
    ASSERT_EQ(gradients->size(), 1u);
    EXPECT_EQ(floats(gradients->at("w")), (Floats{4 * scale, 6 * scale}));
    ASSERT_EQ(sgd.step(*gradients), Error::Ok);
  }
  EXPECT_EQ(floats(module.named_parameters("forward")->at("w")), (Floats{0.5, 0.75}));
  EXPECT_EQ(bytes, before);
}

TEST(TrainingModule, UnloadingGoesBackToTheProgramsValues) {
  const auto bytes = Program().build();
  TrainingModule module(loader(bytes));
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  module.named_parameters("forward")->at("w").mutable_data_ptr<float>()[0] = 9;
  EXPECT_TRUE(module.unload_forward());
  EXPECT_FALSE(module.unload_method("forward"));
  EXPECT_EQ(module.named_gradients("forward").error(), Error::InvalidArgument);
  EXPECT_EQ(floats(module.named_parameters("forward")->at("w")), (Floats{4, 6}));
}

TEST(TrainingModule, GradientsAreThoseOfARunThatSucceeded) {
  const auto bytes = Program().build();
  TrainingModule module(loader(bytes));
  EXPECT_EQ(module.named_gradients("forward").error(), Error::InvalidArgument);
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  EXPECT_EQ(module.named_gradients("forward").error(), Error::Ok);
  const auto three = make_tensor_ptr(Floats{1, 1, 1});
  const EValue wrong(three);
  EXPECT_EQ(module.execute_forward_backward("forward", {wrong}).error(), Error::InvalidArgument);
  EXPECT_EQ(module.named_gradients("forward").error(), Error::InvalidArgument);
  Module& base = module;
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  base.unload_method("forward");
  EXPECT_EQ(module.named_gradients("forward").error(), Error::InvalidArgument);
}

TEST(TrainingModule, TrainedParametersAreExternalDataOfTheNextModule) {
  Program program;
  program.external = true;
  const auto bytes = program.build();
  const auto saved = [](const aten::Tensor& w) {
    std::ostringstream out;
    EXPECT_EQ(flat_tensor::save_ptd(out, {{"w", w}}, 16), Error::Ok);
    const std::string text = out.str();
    return std::vector<uint8_t>(text.begin(), text.end());
  };
  const auto first = saved(*make_tensor_ptr(Floats{4, 6}));
  TrainingModule module(loader(bytes), nullptr, nullptr, nullptr, loader(first));
  SGD sgd(module.named_parameters("forward").get(), SGDOptions(0.5));
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  ASSERT_EQ(sgd.step(module.named_gradients("forward").get()), Error::Ok);
  const auto attributes = module.named_attributes("forward");
  ASSERT_EQ(attributes.error(), Error::Ok);
  ASSERT_EQ(attributes->size(), 1u);
  const auto second = saved(attributes->at("w"));
  TrainingModule next(loader(bytes), nullptr, nullptr, nullptr, loader(second));
  EXPECT_EQ(floats(next.named_parameters("forward")->at("w")), (Floats{2, 3}));
  TrainingModule without(loader(bytes));
  EXPECT_EQ(without.named_parameters("forward").error(), Error::InvalidExternalData);
}

TEST(TrainingModule, MethodsThatAreNotThereAreInvalidArguments) {
  Program program;
  const auto sound = program.build();
  TrainingModule other(loader(sound));
  EXPECT_EQ(other.execute_forward_backward("backward", {}).error(), Error::InvalidArgument);
  EXPECT_EQ(other.named_parameters("backward").error(), Error::InvalidArgument);
  EXPECT_EQ(other.named_gradients("backward").error(), Error::InvalidArgument);
  EXPECT_EQ(other.named_attributes("backward").error(), Error::InvalidArgument);
  for (Values Program::*const missing :
       {&Program::gradients, &Program::parameters, &Program::names}) {
    Program without;
    without.*missing = nullptr;
    const auto bytes = without.build();
    TrainingModule module(loader(bytes));
    EXPECT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::InvalidArgument);
    EXPECT_EQ(module.named_parameters("forward").error(), Error::InvalidArgument);
    EXPECT_EQ(module.execute("forward", kOnes).error(), Error::Ok);
  }
}

/// What asking for the parameters says, and running, unless what is wrong is only found behind it.
Error error_of(const Program& program, bool is_found_later = false) {
  const auto bytes = program.build();
  TrainingModule module(loader(bytes));
  const Error error = module.named_parameters("forward").error();
  if (!is_found_later) {
    EXPECT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), error);
  }
  return error;
}

TEST(TrainingModule, RefusesPlacesThatLie) {
  for (const int64_t place : {int64_t{-1}, int64_t{0}, int64_t{2}, int64_t{3}, int64_t{4},
                              int64_t{1} << 62, INT64_MIN, INT64_MAX}) {
    Program gradients, parameters;
    gradients.gradients = integers({place});
    EXPECT_EQ(error_of(gradients), Error::InvalidProgram) << place;
    if (place == 2) continue;
    parameters.parameters = integers({place});
    EXPECT_EQ(error_of(parameters), Error::InvalidProgram) << place;
  }
  for (const Values& values :
       {integers({}), integers({1, 1}), texts({"1"}),
        Values([](PlanBuilder& plan) { return std::vector<int32_t>{plan.number(1)}; }),
        Values([](PlanBuilder& plan) { return std::vector<int32_t>{plan.none()}; })}) {
    Program gradients, parameters;
    gradients.gradients = values;
    EXPECT_EQ(error_of(gradients), Error::InvalidProgram);
    parameters.parameters = values;
    EXPECT_EQ(error_of(parameters), Error::InvalidProgram);
  }
}

TEST(TrainingModule, RefusesNamesThatLie) {
  for (const Values& values : {texts({}), texts({"w", "v"}), integers({1})}) {
    Program program;
    program.names = values;
    EXPECT_EQ(error_of(program), Error::InvalidProgram);
  }
  Program twice;  // the parameter is its own gradient, and has one name for both
  twice.gradients = twice.parameters = integers({1});
  twice.names = texts({"w", "w"});
  EXPECT_EQ(error_of(twice, true), Error::InvalidProgram);
}

TEST(TrainingModule, RefusesConstantsAsParameters) {
  Program program;
  program.constant = true;
  EXPECT_EQ(error_of(program, true), Error::InvalidProgram);
  // Called by another name, it is still not written.
  const auto bytes = program.build();
  TrainingModule module(loader(bytes));
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  const auto attributes = module.named_attributes("forward");
  SGD sgd(attributes.get(), SGDOptions(0.5));
  EXPECT_EQ(sgd.step(module.named_gradients("forward").get()), Error::InvalidProgram);
  EXPECT_EQ(floats(attributes->at("w")), (Floats{4, 6}));
}

TEST(TrainingModule, RefusesGradientsThatAreNoTensors) {
  Program program;
  program.number_for_gradient = true;
  const auto bytes = program.build();
  TrainingModule module(loader(bytes));
  ASSERT_EQ(module.execute_forward_backward("forward", {kOnes}).error(), Error::Ok);
  EXPECT_EQ(module.named_gradients("forward").error(), Error::InvalidProgram);
}

}  // namespace
}  // namespace executorch::extension::training
