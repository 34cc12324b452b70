#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <cstring>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using testing::LoadedMethod;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

// Reads the layout of both, as kernels do.
void copy(KernelRuntimeContext& context, Span<EValue*> args) {
  const aten::Tensor &x = args[0]->toTensor(), &out = args[1]->toTensor();
  const bool alike = x.strides()[0] == out.strides()[0] && x.dim_order()[0] == out.dim_order()[0];
  if (!alike) return context.fail(Error::InvalidArgument);
  std::memcpy(out.mutable_data_ptr(), x.const_data_ptr(), x.nbytes());
}

LoadedMethod load_copy() {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x = plan.tensor({.sizes = {2, 3}, .memory_id = 1});
  const int32_t out = plan.tensor({.sizes = {2, 3}, .memory_id = 1, .offset = 32});
  plan.kernel("test::copy.out", {x, out, out});
  plan.inputs = {x};
  plan.outputs = {out};
  plan.arenas = {0, 64};
  return LoadedMethod(builder.build(), "forward", nullptr, nullptr,
                      {Kernel("test::copy.out", copy)});
}

TEST(MethodIo, RawValuesWithoutLayoutOrMemoryAreErrors) {
  LoadedMethod loaded = load_copy();
  int32_t sizes[] = {2, 3}, strides[] = {3, 1};
  uint8_t order[] = {0, 1};
  Floats data(6, 1);
  OwnedTensor<float> x({2, 3}, Floats(6, 1)), out({2, 3}, Floats(6));
  loaded.method->mutable_input(0) = x.value();
  loaded.method->mutable_output(0) = out.value();
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(out.data(), Floats(6, 1));
  aten::TensorImpl bare(ScalarType::Float, 2, sizes, data.data());
  aten::TensorImpl unordered(ScalarType::Float, 2, sizes, data.data(), nullptr, strides);
  aten::TensorImpl unstrided(ScalarType::Float, 2, sizes, data.data(), order);
  for (aten::TensorImpl* impl : {&bare, &unordered, &unstrided}) {
    loaded.method->mutable_input(0) = EValue(aten::Tensor(impl));
    EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);
    loaded.method->mutable_input(0) = x.value();
    loaded.method->mutable_output(0) = EValue(aten::Tensor(impl));
    EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);
    loaded.method->mutable_output(0) = out.value();
  }
  aten::TensorImpl nowhere(ScalarType::Float, 2, sizes, nullptr, order, strides);
  loaded.method->mutable_input(0) = EValue(aten::Tensor(&nowhere));
  EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
  loaded.method->mutable_input(0) = x.value();
  EXPECT_EQ(loaded.method->execute(), Error::Ok);
}

TEST(MethodIo, TensorsThatNobodyCanHaveAreNoInputs) {
  LoadedMethod loaded = load_copy();
  int32_t sizes[] = {2, 3}, strides[] = {3, 1};
  Floats data(6, 1);
  for (const uint8_t beyond : {2, 7, 255}) {
    uint8_t order[] = {beyond, 1};
    aten::TensorImpl impl(ScalarType::Float, 2, sizes, data.data(), order, strides);
    EXPECT_EQ(loaded.method->set_input(EValue(aten::Tensor(&impl)), 0), Error::InvalidArgument);
  }
  EXPECT_EQ(loaded.method->set_input(EValue(aten::Tensor(nullptr)), 0), Error::InvalidArgument);
  loaded.method->mutable_input(0) = EValue(aten::Tensor(nullptr));
  EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);
}

TEST(MethodIo, ValuesAreCopiedToRoomThatIsThere) {
  LoadedMethod loaded = load_copy();
  EValue room[2];
  EXPECT_EQ(loaded.method->get_outputs(room, 2), Error::Ok);
  EXPECT_TRUE(room[0].isTensor() && room[1].isNone());
  EXPECT_EQ(loaded.method->get_outputs(room, 0), Error::InvalidArgument);
  EXPECT_EQ(loaded.method->get_outputs(nullptr, 1), Error::InvalidArgument);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  EXPECT_EQ(loaded.method->get_inputs(nullptr, 1), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::runtime
