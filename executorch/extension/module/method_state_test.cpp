#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/module/method_state.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace executorch::extension {
namespace {

using runtime::Error;
using runtime::EValue;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

constexpr int32_t kLength = 4096;  // floats: four pages

/// forward(x [4096]): a buffer += x; the buffer is returned. With a name it can be saved.
std::vector<uint8_t> program(const std::string& name, int32_t length = kLength) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const auto bytes = static_cast<uint64_t>(length) * 4;
  const int32_t x = plan.tensor({.sizes = {length}, .memory_id = 1});
  const int32_t kept =
      plan.tensor({.sizes = {length}, .memory_id = 1, .offset = bytes, .name = name});
  const int32_t sum = plan.tensor({.sizes = {length}, .memory_id = 1, .offset = 2 * bytes});
  plan.kernel("aten::add.out", {kept, x, plan.integer(1), sum, sum});
  plan.kernel("aten::copy_", {kept, sum, plan.boolean(false), kept});
  plan.inputs = {x};
  plan.outputs = {sum};
  plan.arenas = {0, static_cast<int64_t>(3 * bytes)};
  return builder.build();
}

class MethodStateTest : public ::testing::Test {
 protected:
  static Module load(const std::vector<uint8_t>& bytes) {
    return Module(std::make_unique<BufferDataLoader>(bytes.data(), bytes.size()));
  }
  // Adds `value` at one place; what is there then.
  static float add(Module& module, size_t at, float value) {
    std::vector<float> items(kLength);
    items[at] = value;
    const auto result = module.forward(EValue(from_blob(items.data(), {kLength})));
    EXPECT_EQ(result.error(), Error::Ok);
    return result.ok() ? result->at(0).toTensor().const_data_ptr<float>()[at] : -1;
  }

  const std::vector<uint8_t> bytes_ = program("kept");
  Module module_ = load(bytes_);
};

TEST_F(MethodStateTest, RestoresWhatWasSaved) {
  EXPECT_EQ(add(module_, 5, 1), 1);
  const auto state = MethodState::save(module_);
  ASSERT_EQ(state.error(), Error::Ok);
  EXPECT_EQ(add(module_, 5, 2), 3);
  EXPECT_EQ(add(module_, 3000, 7), 7);
  ASSERT_EQ(state->restore(module_), Error::Ok);
  EXPECT_EQ(add(module_, 5, 0), 1);
  EXPECT_EQ(add(module_, 3000, 0), 0);
}

TEST_F(MethodStateTest, CostsWhatWasWritten) {
  EXPECT_EQ(MethodState::save(module_)->nbytes(), 0u);
  add(module_, 2000, 1);
  EXPECT_EQ(MethodState::save(module_)->nbytes(), 4096u);
}

TEST_F(MethodStateTest, ForksIntoAnotherModule) {
  add(module_, 1, 4);
  const auto state = MethodState::save(module_);
  Module other = load(bytes_);
  add(other, 2, 9);
  ASSERT_EQ(state->restore(other), Error::Ok);
  EXPECT_EQ(add(other, 1, 1), 5);
  EXPECT_EQ(add(other, 2, 0), 0);
  EXPECT_EQ(add(module_, 1, 0), 4);
}

TEST_F(MethodStateTest, ResetIsAsLoaded) {
  add(module_, 1, 4);
  ASSERT_EQ(MethodState::reset(module_), Error::Ok);
  EXPECT_EQ(add(module_, 1, 0), 0);
}

TEST_F(MethodStateTest, RefusesOtherBuffersAndUnnamedOnes) {
  const auto state = MethodState::save(module_);
  const auto longer = program("kept", 2 * kLength), renamed = program("other"), none = program("");
  Module other = load(longer);
  EXPECT_EQ(state->restore(other), Error::InvalidArgument);
  Module another = load(renamed);
  EXPECT_EQ(state->restore(another), Error::InvalidArgument);
  Module unnamed = load(none);
  EXPECT_EQ(MethodState::save(unnamed).error(), Error::NotSupported);
  EXPECT_EQ(MethodState::save(module_, "backward").error(), Error::InvalidArgument);
}

// A file may give a constant the name of a buffer; its bytes may be mapped for reading only.
TEST_F(MethodStateTest, LeavesConstantsAlone) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes(std::vector<float>{4, 6}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1, .name = "constant"});
  const int32_t kept = plan.tensor({.sizes = {2}, .memory_id = 1, .name = "kept"});
  plan.kernel("aten::add.out", {kept, constant, plan.integer(1), kept, kept});
  plan.outputs = {constant, kept};
  plan.arenas = {0, 8};
  const auto bytes = builder.build();
  const std::string path = ::testing::TempDir() + "method_state_constant.pte";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  Module module(path, Module::LoadMode::Mmap);
  const auto state = MethodState::save(module);
  ASSERT_EQ(state.error(), Error::Ok);
  EXPECT_EQ(state->nbytes(), 0u);
  EXPECT_EQ(state->restore(module), Error::Ok);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace executorch::extension
