#include <executorch/backends/example/runtime/text.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace executorch::backends::example
