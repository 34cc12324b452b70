#include <executorch/runtime/core/event_tracer_hooks.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>

namespace executorch::runtime {
namespace {

using namespace internal;

/// Writes down what it is called with.
class RecordingTracer : public EventTracer {
 public:
  std::vector<std::string> calls;

  void create_event_block(const char* name) override { add("block", name); }
  EventTracerEntry start_profiling(const char* name, ChainID, DebugHandle) override {
    add("start", std::string(name) + " " + std::to_string(current_chain_id()) + " " +
                     std::to_string(current_debug_handle()));
    return {};
  }
  void end_profiling(EventTracerEntry) override { add("end", ""); }
  EventTracerEntry start_profiling_delegate(const char*, DelegateDebugIntId id) override {
    add("start delegate", std::to_string(id));
    return {};
  }
  void end_profiling_delegate(EventTracerEntry, const void*, size_t n) override {
    add("end delegate", std::to_string(n));
  }
  void log_profiling_delegate(const char* name, DelegateDebugIntId, et_timestamp_t, et_timestamp_t,
                              const void*, size_t) override {
    add("log delegate", name);
  }
  AllocatorID track_allocator(const char* name) override { return add("allocator", name), 4; }
  void track_allocation(AllocatorID, size_t size) override {
    add("allocation", std::to_string(size));
  }
  Result<bool> log_evalue(const EValue&, LoggedEValueType type) override {
    add("evalue", type == LoggedEValueType::kProgramOutput ? "output" : "intermediate");
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const aten::Tensor&) override {
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const ArrayRef<aten::Tensor>) override {
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const int& output) override {
    add("delegate output", std::to_string(output));
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const bool&) override {
    return true;
  }
  Result<bool> log_intermediate_output_delegate(const char*, DelegateDebugIntId,
                                                const double&) override {
    return true;
  }
  void set_delegation_intermediate_output_filter(EventTracerFilterBase*) override {}

 private:
  void add(const std::string& what, const std::string& of) { calls.push_back(what + ":" + of); }
};

using Calls = std::vector<std::string>;

TEST(EventTracerHooks, NullTracerIsSilent) {
  EventTracerProfileMethodScope method(nullptr, "m");
  EventTracerProfileOpScope op(nullptr, "o");
  EventTracerProfileInstructionScope instruction(nullptr, 0, 1);
  event_tracer_create_event_block(nullptr, "b");
  event_tracer_log_evalue(nullptr, EValue());
  EXPECT_EQ(event_tracer_track_allocator(nullptr, "a"), 0u);
  event_tracer_end_profiling_delegate(nullptr,
                                      event_tracer_start_profiling_delegate(nullptr, "x", 0));
}

TEST(EventTracerHooks, EventsBelongToTheirInstruction) {
  RecordingTracer tracer;
  {
    EventTracerProfileInstructionScope instruction(&tracer, 0, 5);
    EventTracerProfileOpScope op(&tracer, "add");
  }
  EXPECT_EQ(tracer.calls, (Calls{"start:add 0 5", "end:"}));
  EXPECT_EQ(tracer.current_chain_id(), kUnsetChainId);
}

TEST(EventTracerHooks, MethodLevelLeavesOperatorsOut) {
  RecordingTracer tracer;
  tracer.set_event_tracer_profiling_level(EventTracerProfilingLevel::kProfileMethodOnly);
  {
    EventTracerProfileMethodScope method(&tracer, "execute");
    EventTracerProfileOpScope op(&tracer, "add");
  }
  EXPECT_EQ(tracer.calls, (Calls{"start:execute -1 0", "end:"}));
}

TEST(EventTracerHooks, ValuesAreLoggedByLevel) {
  RecordingTracer tracer;
  const auto log_all = [&](EventTracerDebugLogLevel level) {
    tracer.calls.clear();
    tracer.set_event_tracer_debug_level(level);
    event_tracer_log_evalue(&tracer, EValue(1));
    event_tracer_log_evalue_output(&tracer, EValue(1));
    event_tracer_log_output_delegate(&tracer, "d", 0, 3);
    return tracer.calls;
  };
  EXPECT_EQ(log_all(EventTracerDebugLogLevel::kNoLogging), Calls{});
  EXPECT_EQ(log_all(EventTracerDebugLogLevel::kProgramOutputs), Calls{"evalue:output"});
  EXPECT_EQ(log_all(EventTracerDebugLogLevel::kIntermediateOutputs),
            (Calls{"evalue:intermediate", "evalue:output", "delegate output:3"}));
}

}  // namespace
}  // namespace executorch::runtime
