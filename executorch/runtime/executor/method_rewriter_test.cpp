#include <executorch/runtime/executor/method_rewriter.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

namespace executorch::runtime {
namespace {

using testing::LoadedMethod;
using testing::PlanBuilder;
using testing::ProgramBuilder;

void put(int64_t value, Span<EValue*> args) {
  *args[0] = EValue(value);
}

// Two kernels that write to one value, the second of which is the method's output.
class RewriterTest : public ::testing::Test {
 protected:
  RewriterTest() {
    PlanBuilder& plan = builder_.method();
    const int32_t a = plan.integer(0);
    plan.kernel("test::one", {a});
    plan.kernel("test::two", {a});
    plan.outputs = {a};
    bytes_ = builder_.build();
  }
  ~RewriterTest() override { set_method_rewriter(nullptr); }

  const std::vector<Kernel> kernels_ = {
      Kernel("test::one", [](KernelRuntimeContext&, Span<EValue*> args) { put(1, args); }),
      Kernel("test::two", [](KernelRuntimeContext&, Span<EValue*> args) { put(2, args); })};
  ProgramBuilder builder_;
  std::vector<uint8_t> bytes_;
};

TEST_F(RewriterTest, SeesInstructionsValuesAndOutputs) {
  set_method_rewriter([](const MethodDraft& method) {
    EXPECT_STREQ(method.name, "forward");
    ASSERT_EQ(method.chains.size(), 1);
    ASSERT_EQ(method.chains[0].size(), 2);
    EXPECT_EQ(method.inputs.size(), 0);
    ASSERT_EQ(method.outputs.size(), 1);
    EXPECT_EQ(method.chains[0][1].args[0], &method.values[method.outputs[0]]);
  });
  LoadedMethod loaded(bytes_, "forward", nullptr, nullptr, kernels_);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->get_output(0).toInt(), 2);
}

TEST_F(RewriterTest, ASkippedInstructionIsAStepThatDoesNothing) {
  set_method_rewriter(
      [](const MethodDraft& method) { method.chains[0][1].kind = Instruction::Kind::Skip; });
  LoadedMethod loaded(bytes_, "forward", nullptr, nullptr, kernels_);
  EXPECT_EQ(loaded.method->step(), Error::Ok);
  EXPECT_EQ(loaded.method->step(), Error::Ok);
  EXPECT_EQ(loaded.method->step(), Error::EndOfMethod);
  EXPECT_EQ(loaded.method->get_output(0).toInt(), 1);
}

TEST_F(RewriterTest, AKernelMayGetAnotherFunctionAndOtherArguments) {
  set_method_rewriter([](const MethodDraft& method) {
    Instruction& last = method.chains[0][1];
    auto** const args = method.allocator.allocateList<EValue*>(2);
    auto* const added = new (method.allocator.allocateInstance<EValue>()) EValue(41);
    args[0] = last.args[0];
    args[1] = added;
    last.args = {args, 2};
    last.kernel = [](KernelRuntimeContext&, Span<EValue*> a) { put(a[1]->toInt() + 1, a); };
  });
  LoadedMethod loaded(bytes_, "forward", nullptr, nullptr, kernels_);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->get_output(0).toInt(), 42);
}

}  // namespace
}  // namespace executorch::runtime
