#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace executorch::devtools {

/// One run of a method as it happened. Times are platform ticks.
struct Run {
  /// An instruction that was run. Its time ends when the next step starts or the run ends: the
  /// runtime's work between two instructions counts for the first.
  struct Step {
    uint32_t chain;
    uint32_t instruction;
    et_timestamp_t start;
  };
  /// What a delegate reports of an operation of its own.
  struct Node {
    size_t step;
    /// -1 where `name` identifies it.
    int32_t id;
    et_timestamp_t start;
    et_timestamp_t end;
    /// Cut where it is longer.
    char name[64];
    /// What the delegate attached, if survey() asked for it.
    std::string metadata;
  };
  et_timestamp_t start = 0;
  et_timestamp_t end = 0;
  std::vector<Step> steps;
  std::vector<Node> nodes;
  /// Events that the arrays had no room for.
  size_t n_lost = 0;
};

/// Records when instructions start, into arrays that reserve() has made: a run allocates nothing.
/// Give it to a method when that is loaded, then, for each run,
///
///   recorder.start_run(); method.execute(); const Run& run = recorder.run();
///
/// Values and allocations are not recorded. At EventTracerProfilingLevel::kProfileMethodOnly a run
/// has a start and an end only.
class Recorder final : public runtime::EventTracer {
 public:
  /// Makes room for so many instructions, and operations of delegates, in one run.
  void reserve(size_t steps, size_t nodes);
  /// From now on runs keep the metadata that delegates attach to events, and allocate for it.
  void survey() { surveys_ = true; }
  /// Forgets the last run. If its events did not fit into the arrays, these are doubled.
  void start_run();
  const Run& run() const { return run_; }

  void create_event_block(const char*) override {}
  runtime::EventTracerEntry start_profiling(const char* name, runtime::ChainID chain,
                                            runtime::DebugHandle handle) override;
  void end_profiling(runtime::EventTracerEntry entry) override;
  runtime::EventTracerEntry start_profiling_delegate(const char* name,
                                                     runtime::DelegateDebugIntId id) override;
  void end_profiling_delegate(runtime::EventTracerEntry entry, const void* metadata,
                              size_t metadata_len) override;
  void log_profiling_delegate(const char* name, runtime::DelegateDebugIntId id,
                              et_timestamp_t start, et_timestamp_t end, const void* metadata,
                              size_t metadata_len) override;
  runtime::AllocatorID track_allocator(const char*) override { return 0; }
  void track_allocation(runtime::AllocatorID, size_t) override {}
  runtime::Result<bool> log_evalue(const runtime::EValue&, runtime::LoggedEValueType) override {
    return false;
  }
  using Logged = runtime::Result<bool>;
  using Id = runtime::DelegateDebugIntId;
  Logged log_intermediate_output_delegate(const char*, Id, const aten::Tensor&) override {
    return false;
  }
  Logged log_intermediate_output_delegate(const char*, Id,
                                          const runtime::ArrayRef<aten::Tensor>) override {
    return false;
  }
  Logged log_intermediate_output_delegate(const char*, Id, const int&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Id, const bool&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Id, const double&) override { return false; }
  void set_delegation_intermediate_output_filter(runtime::EventTracerFilterBase*) override {}

 private:
  int64_t add_node(const char* name, runtime::DelegateDebugIntId id, et_timestamp_t start,
                   et_timestamp_t end, const void* metadata, size_t metadata_len);

  Run run_;
  bool surveys_ = false;
  /// How deep operator scopes are nested; an inner operator counts as part of the outer one.
  int depth_ = 0;
};

}  // namespace executorch::devtools
