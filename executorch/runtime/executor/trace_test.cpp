#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>
#include <executorch/runtime/kernel/traced_call.h>

#include <string>

namespace executorch::runtime {
namespace {

using testing::LoadedMethod;
using testing::PlanBuilder;
using testing::ProgramBuilder;

/// Writes down blocks as "[name]", events as "name@instruction" when they end, values as "name".
class Recorder final : public EventTracer {
 public:
  std::string log;

  void create_event_block(const char* name) override { log += "[" + std::string(name) + "] "; }
  EventTracerEntry start_profiling(const char* name, ChainID, DebugHandle) override {
    names_.push_back(name);
    EventTracerEntry entry{};
    entry.event_id = static_cast<int64_t>(names_.size()) - 1;
    entry.chain_id = current_chain_id();
    entry.debug_handle = current_debug_handle();
    return entry;
  }
  void end_profiling(EventTracerEntry entry) override {
    log += names_[static_cast<size_t>(entry.event_id)];
    log += entry.chain_id < 0 ? " " : "@" + std::to_string(entry.debug_handle) + " ";
  }
  Result<bool> log_evalue(const EValue& value, LoggedEValueType type) override {
    log += type == LoggedEValueType::kProgramOutput ? "output=" : "value=";
    if (value.isTensorList()) {
      log += "list of " + std::to_string(value.toTensorList().size()) + " ";
    } else {
      log += std::to_string(value.isInt() ? value.toInt() : value.toTensor().numel()) + " ";
    }
    return true;
  }
  EventTracerEntry start_profiling_delegate(const char*, DelegateDebugIntId) override { return {}; }
  void end_profiling_delegate(EventTracerEntry, const void*, size_t) override {}
  void log_profiling_delegate(const char*, DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                              const void*, size_t) override {}
  void track_allocation(AllocatorID, size_t) override {}
  AllocatorID track_allocator(const char*) override { return 0; }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const aten::Tensor&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const ArrayRef<aten::Tensor>) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const int&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const bool&) override {
    return false;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const double&) override {
    return false;
  }
  void set_delegation_intermediate_output_filter(EventTracerFilterBase*) override {}

 private:
  std::vector<std::string> names_;
};

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    PlanBuilder& plan = builder_.method();
    const int32_t a = plan.integer(1);
    const int32_t b = plan.integer(2);
    plan.kernel("test::nothing", {a});
    plan.move(a, b);
    plan.jump_if_false(plan.boolean(true), 0);
    plan.outputs = {b};
    bytes_ = builder_.build();
  }
  const std::vector<Kernel> kernels_ = {
      Kernel("test::nothing", OpFunction([](KernelRuntimeContext&, Span<EValue*>) {}))};
  ProgramBuilder builder_;
  std::vector<uint8_t> bytes_;
  Recorder tracer_;
};

TEST_F(TraceTest, EventsEndFromTheInsideOutAndOutputsComeLast) {
  tracer_.set_event_tracer_debug_level(EventTracerDebugLogLevel::kProgramOutputs);
  LoadedMethod loaded(bytes_, "forward", &tracer_, nullptr, kernels_);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(tracer_.log, "[Default] Method::init Program::load_method ");
  tracer_.log.clear();
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(tracer_.log,
            "[Execute] native_call_nothing@0 OPERATOR_CALL@0 MOVE_CALL@1 JF_CALL@2 "
            "Method::execute output=1 ");
}

TEST_F(TraceTest, WhatAnInstructionComputedIsLoggedBeforeItEnds) {
  tracer_.set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  LoadedMethod loaded(bytes_, "forward", &tracer_, nullptr, kernels_);
  tracer_.log.clear();
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(tracer_.log,
            "[Execute] value=1 native_call_nothing@0 OPERATOR_CALL@0 MOVE_CALL@1 JF_CALL@2 "
            "Method::execute output=1 ");
}

TEST_F(TraceTest, ResultsAreTheLastArgumentOrWhatItGathers) {
  testing::TensorFactory<aten::ScalarType::Float> floats;
  EValue one(floats.zeros({1})), two(floats.zeros({2})), in(floats.zeros({9}));
  EValue* items[] = {&one, &two};
  aten::Tensor unwrapped[] = {one.toTensor(), two.toTensor()};
  BoxedEvalueList<aten::Tensor> list(items, unwrapped, 2);
  EValue gathered(&list), again(&list), number(int64_t{3});
  const auto log = [&](const char* name, std::vector<EValue*> args) {
    tracer_.log.clear();
    KernelRuntimeContext context(&tracer_);
    const auto kernel = [](KernelRuntimeContext&, Span<EValue*>) {};
    internal::call_traced(name, "out", kernel, context, {args.data(), args.size()});
    return tracer_.log;
  };
  tracer_.set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  EXPECT_EQ(log("aten::abs", {&in, &two, &two}), "value=2 native_call_abs.out ");
  EXPECT_EQ(log("aten::topk", {&in, &one, &two, &gathered}),
            "value=1 value=2 native_call_topk.out ");
  EXPECT_EQ(log("aten::split", {&in, &gathered, &again}), "value=list of 2 native_call_split.out ");
  EXPECT_EQ(log("my::count", {&in, &number}), "value=3 native_call_count.out ");
  EXPECT_EQ(log("executorch_prim::add", {&number, &number, &number}), "");
}

TEST_F(TraceTest, AFailedKernelHasNoResults) {
  tracer_.set_event_tracer_debug_level(EventTracerDebugLogLevel::kIntermediateOutputs);
  KernelRuntimeContext context(&tracer_);
  EValue number(int64_t{3});
  EValue* args[] = {&number};
  const auto kernel = [](KernelRuntimeContext& c, Span<EValue*>) { c.fail(Error::Internal); };
  internal::call_traced("my::op", nullptr, kernel, context, {args, 1});
  EXPECT_EQ(tracer_.log, "native_call_op ");
}

TEST_F(TraceTest, AnInstructionThatTracesItselfIsLeftToIt) {
  set_method_rewriter([](const MethodDraft& method) {
    method.chains[0][0].traces_itself = true;
    method.chains[0][0].kernel = [](KernelRuntimeContext& context, Span<EValue*>) {
      internal::EventTracerProfileOpScope scope(context.internal_event_tracer(), "fused");
    };
  });
  LoadedMethod loaded(bytes_, "forward", &tracer_, nullptr, kernels_);
  set_method_rewriter(nullptr);
  tracer_.log.clear();
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(tracer_.log,
            "[Execute] fused@0 OPERATOR_CALL@0 MOVE_CALL@1 JF_CALL@2 Method::execute ");
}

TEST_F(TraceTest, MethodLevelLeavesInstructionsOut) {
  tracer_.set_event_tracer_profiling_level(EventTracerProfilingLevel::kProfileMethodOnly);
  LoadedMethod loaded(bytes_, "forward", &tracer_, nullptr, kernels_);
  tracer_.log.clear();
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(tracer_.log, "[Execute] Method::execute ");
}

TEST_F(TraceTest, AMethodWhoseOutputsAreAllLoggedIsNotRewritten) {
  set_method_rewriter(
      [](const MethodDraft& method) { method.chains[0][0].kind = Instruction::Kind::Skip; });
  for (const auto level : {EventTracerDebugLogLevel::kProgramOutputs,
                           EventTracerDebugLogLevel::kIntermediateOutputs}) {
    Recorder recorder;
    recorder.set_event_tracer_debug_level(level);
    LoadedMethod loaded(bytes_, "forward", &recorder, nullptr, kernels_);
    recorder.log.clear();
    ASSERT_EQ(loaded.method->execute(), Error::Ok);
    EXPECT_EQ(recorder.log.find("OPERATOR_CALL@0") != std::string::npos,
              level == EventTracerDebugLogLevel::kIntermediateOutputs);
  }
  set_method_rewriter(nullptr);
}

}  // namespace
}  // namespace executorch::runtime
