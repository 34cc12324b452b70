#include <executorch/backends/example/runtime/text.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace executorch::backends::example {
namespace {

using runtime::Error;

class ExampleText : public ::testing::Test {
 protected:
  void SetUp() override { runtime::runtime_init(); }
};

TEST_F(ExampleText, BothBackendsAreRegistered) {
  EXPECT_NE(runtime::get_backend_class("ExampleBackend"), nullptr);
  EXPECT_NE(runtime::get_backend_class("BackendWithCompilerDemo"), nullptr);
}

TEST_F(ExampleText, StepsAreRead) {
  const auto steps = read_example("add 0 1\nrelu 2\noutputs 3 2\n", nullptr);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->steps.size(), 2u);
  EXPECT_EQ(steps->outputs, (std::vector<uint32_t>{3, 2}));
  EXPECT_EQ(steps->check(2), Error::Ok);
}

TEST_F(ExampleText, StepsThatReadLaterValuesAreRefused) {
  const auto steps = read_example("add 0 5\noutputs 1\n", nullptr);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->check(1), Error::InvalidProgram);
}

TEST_F(ExampleText, OutputsThatAreNoValuesAreRefused) {
  const auto steps = read_example("relu 0\noutputs 2\n", nullptr);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->check(1), Error::InvalidProgram);
}

TEST_F(ExampleText, DamagedTextsAreRefused) {
  for (const char* text :
       {"", "\n", "add 0 1", "add 0\noutputs 1\n", "add 0 1 2\noutputs 1\n", "cos 0\noutputs 1\n",
        "add 0 99999999999\noutputs 1\n", "relu 0\n", "outputs 0\nrelu 0\n", "outputs \n",
        "relu -1\noutputs 1\n", "relu 0 \noutputs 1\n", "constant w x\noutputs 0\n"}) {
    EXPECT_EQ(read_example(text, nullptr).error(), Error::DelegateInvalidCompatibility) << text;
  }
}

TEST_F(ExampleText, ConstantsThatAreNotThereAreNotFound) {
  for (const char* text : {"constant w 2 2\noutputs 0\n", "constant number\noutputs 0\n"}) {
    EXPECT_EQ(read_example(text, nullptr).error(), Error::NotFound) << text;
  }
}

TEST_F(ExampleText, DemoChainReadsOneResultAfterTheOther) {
  const auto steps = read_compiler_demo(
      "2version:0#op:demo::aten.sin.default, numel:1, dtype:torch.float32<debug_handle>1#"
      "op:demo::aten.relu.default, numel:1, dtype:torch.float32<debug_handle>2#");
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(steps->steps[1].operands[0], 1u);
  EXPECT_EQ(steps->outputs, std::vector<uint32_t>{2});
  EXPECT_EQ(steps->check(1), Error::Ok);
}

TEST_F(ExampleText, DemoTextCutAnywhereIsRefused) {
  const std::string whole =
      "1version:0#op:demo::aten.mm.default, numel:4, dtype:torch.float32<debug_handle>1"
      "<args>0,1#outputs:2#";
  ASSERT_TRUE(read_compiler_demo(whole).ok());
  const size_t without_outputs = whole.find("outputs");
  for (size_t size = 0; size < whole.size(); ++size) {
    if (size != without_outputs) {
      EXPECT_FALSE(read_compiler_demo(std::string_view(whole).substr(0, size)).ok()) << size;
    }
  }
}

/// Named data that counts how often it is asked for.
class Data final : public runtime::NamedDataMap {
 public:
  std::map<std::string, std::vector<float>, std::less<>> entries;
  mutable int asked = 0;
  size_t shift = 0;

  runtime::Result<runtime::FreeableBuffer> get_data(std::string_view key) const override {
    ++asked;
    const auto found = entries.find(key);
    if (found == entries.end()) return Error::NotFound;
    return runtime::FreeableBuffer(reinterpret_cast<const char*>(found->second.data()) + shift,
                                   found->second.size() * sizeof(float) - 4 * (shift > 0), nullptr);
  }
  runtime::Result<const runtime::TensorLayout> get_tensor_layout(std::string_view) const override {
    return Error::NotImplemented;
  }
  Error load_data_into(std::string_view, void*, size_t) const override {
    return Error::NotImplemented;
  }
  runtime::Result<uint32_t> get_num_keys() const override { return Error::NotImplemented; }
  runtime::Result<const char*> get_key(uint32_t) const override { return Error::NotImplemented; }
};

TEST_F(ExampleText, ConstantsOfOneKeyAreLoadedOnce) {
  Data data;
  data.entries["w"] = {1, 2};
  const auto steps = read_example("constant w 2\nconstant w 1 2\nadd 0 1\noutputs 2\n", &data);
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(data.asked, 1);
  EXPECT_EQ(steps->constants.size(), 2u);
}

TEST_F(ExampleText, ConstantsThatAreNotAlignedOrNotFilledAreRefused) {
  Data data;
  data.entries["w"] = {1, 2};
  for (const char* text : {"constant w 3\noutputs 0\n", "constant w\noutputs 0\n",
                           "constant w 2147483647 2147483647 2147483647\noutputs 0\n"}) {
    EXPECT_EQ(read_example(text, &data).error(), Error::DelegateInvalidCompatibility) << text;
  }
  data.shift = 1;
  EXPECT_EQ(read_example("constant w 1\noutputs 0\n", &data).error(),
            Error::DelegateInvalidCompatibility);
}

class ExampleSteps : public ExampleText {
 protected:
  using Tensor = aten::Tensor;
  runtime::testing::TensorFactory<aten::ScalarType::Float> floats;

  Error run(const char* text, std::vector<Tensor> args, const Data* data = nullptr) {
    ET_ASSIGN_OR_RETURN(const auto steps, read_example(text, data));
    std::vector<runtime::EValue> values(args.begin(), args.end());
    std::vector<runtime::EValue*> pointers;
    for (auto& value : values) pointers.push_back(&value);
    runtime::internal::PlatformMemoryAllocator allocator;
    runtime::BackendExecutionContext context(nullptr, &allocator);
    return steps.run(context, {pointers.data(), pointers.size()});
  }
  Tensor dynamic(std::vector<int32_t> sizes) {
    return floats.zeros(sizes, runtime::TensorShapeDynamism::DYNAMIC_BOUND);
  }
};

TEST_F(ExampleSteps, ComputeWithConstants) {
  Data data;
  data.entries["w"] = {1, 2};
  const auto y = dynamic({2, 2});
  ASSERT_EQ(run("constant w 2\nmul 0 1\nmm 2 0\nrelu 3\noutputs 4\n",
                {floats.make({2, 2}, {1, 2, -3, 4}), y}, &data),
            Error::Ok);
  EXPECT_EQ(std::vector<float>(y.const_data_ptr<float>(), y.const_data_ptr<float>() + 4),
            (std::vector<float>{0, 18, 0, 26}));
}

TEST_F(ExampleSteps, DoNotWriteConstants) {
  const auto x = floats.make({2}, {1, 2}), y = floats.make({2}, {7, 8});
  y.unsafeGetTensorImpl()->borrow_data(y.mutable_data_ptr(), 2, /*read_only=*/true);
  EXPECT_EQ(run("relu 0\noutputs 1\n", {x, y}), Error::InvalidProgram);
  EXPECT_EQ(y.const_data_ptr<float>()[0], 7);
}

TEST_F(ExampleSteps, RefuseWhatHasNoMemory) {
  const auto x = floats.ones({2}), y = floats.zeros({2}), none = floats.ones({2});
  none.unsafeGetTensorImpl()->set_data(nullptr);
  EXPECT_EQ(run("relu 0\noutputs 1\n", {none, y}), Error::InvalidArgument);
  EXPECT_EQ(run("relu 0\noutputs 1\n", {x, none}), Error::InvalidState);
  EXPECT_EQ(run("relu 0\noutputs 1\n", {y}), Error::InvalidProgram);
}

TEST_F(ExampleSteps, RefuseOutputsOfAnotherOrder) {
  const auto x = floats.ones({1, 2, 2, 2});
  EXPECT_EQ(run("relu 0\noutputs 1\n", {x, floats.zeros_channels_last({1, 2, 2, 2})}),
            Error::InvalidArgument);
}

TEST_F(ExampleSteps, RefuseResultsOutOfProportion) {
  const auto column = floats.ones({65536, 1}), row = floats.ones({1, 65536});
  const auto y = floats.zeros({1});
  EXPECT_EQ(run("add 0 1\noutputs 2\n", {column, row, y}), Error::NotSupported);
  EXPECT_EQ(run("mm 0 1\nmm 2 2\noutputs 3\n", {floats.ones({4096, 1}), floats.ones({1, 4096}), y}),
            Error::NotSupported);
}

TEST_F(ExampleSteps, AreToldApartFromInputsByTheRuntime) {
  auto* const backend = runtime::get_backend_class("ExampleBackend");
  runtime::MemoryAllocator allocator(0, nullptr);
  runtime::BackendInitContext context(&allocator);
  const std::string text = "add 0 1\noutputs 2\n";
  runtime::FreeableBuffer processed(text.data(), text.size(), nullptr);
  const auto handle = backend->init(context, &processed, {});
  ASSERT_TRUE(handle.ok());
  EXPECT_FALSE(backend->writes_argument(*handle, 1, 3));
  EXPECT_TRUE(backend->writes_argument(*handle, 2, 3));
  EXPECT_FALSE(backend->writes_argument(*handle, 0, 0));
  backend->destroy(*handle);
}

}  // namespace
}  // namespace executorch::backends::example
