#pragma once

#include <cstdint>
#include <cstdlib>

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime {

struct EValue;

typedef uint32_t AllocatorID;
/// Which chain of instructions an event belongs to, and which instruction of it.
typedef int32_t ChainID;
typedef uint32_t DebugHandle;
/// How a delegate numbers its own operations.
typedef int32_t DelegateDebugIntId;

constexpr ChainID kUnsetChainId = -1;
constexpr DebugHandle kUnsetDebugHandle = 0;
constexpr DelegateDebugIntId kUnsetDelegateDebugIntId = -1;
constexpr int kUnsetBundledInputIndex = -1;

/// How a delegate names an operation: by number or by string. kNone: the event is not a delegate's.
enum class DelegateDebugIdType { kNone, kInt, kStr };

enum class LoggedEValueType {
  kIntermediateOutput = 0,
  kProgramOutput = 1,
};

/// Which values are recorded.
enum class EventTracerDebugLogLevel {
  kNoLogging,
  kProgramOutputs,
  kIntermediateOutputs,
};

/// Which times are recorded.
enum class EventTracerProfilingLevel {
  kProfileMethodOnly,
  kProfileAllEvents,
};

/// Decides which operations of a delegate have their outputs recorded.
class EventTracerFilterBase {
 public:
  /// True to record. An operation has a name or, when that is null, an index.
  virtual Result<bool> filter(const char* name, DelegateDebugIntId delegate_debug_index) = 0;
  virtual ~EventTracerFilterBase() = default;
};

/// An event that has begun; handed back to the tracer when it ends.
struct EventTracerEntry {
  int64_t event_id;
  ChainID chain_id;
  DebugHandle debug_handle;
  /// Platform ticks.
  et_timestamp_t start_time;
  DelegateDebugIdType delegate_event_id_type;
};

/// Receives the events of loading and running: times, allocations and values. The runtime calls it
/// through event_tracer_hooks.h; ETDumpGen writes what it gets to a file.
class EventTracer {
 public:
  /// Begins a new block of this name, to which later events belong.
  virtual void create_event_block(const char* name) = 0;

  /// Begins an event. If the chain or handle is unset, the current one is used.
  virtual EventTracerEntry start_profiling(const char* name, ChainID chain_id = kUnsetChainId,
                                           DebugHandle debug_handle = kUnsetDebugHandle) = 0;
  virtual void end_profiling(EventTracerEntry prof_entry) = 0;

  /// Begins an event for an operation of a delegate, which is identified by `name`, or by index if
  /// `name` is null. `metadata` is copied.
  virtual EventTracerEntry start_profiling_delegate(const char* name,
                                                    DelegateDebugIntId delegate_debug_index) = 0;
  virtual void end_profiling_delegate(EventTracerEntry event_tracer_entry,
                                      const void* metadata = nullptr, size_t metadata_len = 0) = 0;
  /// Reports a complete event, for a delegate that learns its times afterwards. Times are in
  /// platform ticks.
  virtual void log_profiling_delegate(const char* name, DelegateDebugIntId delegate_debug_index,
                                      et_timestamp_t start_time, et_timestamp_t end_time,
                                      const void* metadata = nullptr, size_t metadata_len = 0) = 0;

  /// Registers the name of an allocator. Returns the id that track_allocation() takes.
  virtual AllocatorID track_allocator(const char* name) = 0;
  /// Reports that `size` bytes were allocated from that allocator.
  virtual void track_allocation(AllocatorID id, size_t size) = 0;

  /// Reports a value that an instruction or the method computed. Returns whether it was recorded
  /// (false if a level or a filter excludes it), or the error that prevented it.
  virtual Result<bool> log_evalue(const EValue& evalue, LoggedEValueType evalue_type) = 0;
  virtual Result<bool> log_intermediate_output_delegate(const char* name,
                                                        DelegateDebugIntId delegate_debug_index,
                                                        const aten::Tensor& output) = 0;
  virtual Result<bool> log_intermediate_output_delegate(const char* name,
                                                        DelegateDebugIntId delegate_debug_index,
                                                        const ArrayRef<aten::Tensor> output) = 0;
  virtual Result<bool> log_intermediate_output_delegate(const char* name,
                                                        DelegateDebugIntId delegate_debug_index,
                                                        const int& output) = 0;
  virtual Result<bool> log_intermediate_output_delegate(const char* name,
                                                        DelegateDebugIntId delegate_debug_index,
                                                        const bool& output) = 0;
  virtual Result<bool> log_intermediate_output_delegate(const char* name,
                                                        DelegateDebugIntId delegate_debug_index,
                                                        const double& output) = 0;

  /// Borrowed; null records everything.
  virtual void set_delegation_intermediate_output_filter(
      EventTracerFilterBase* event_tracer_filter) = 0;

  /// Sets the chain and the handle that the next events belong to.
  void set_chain_debug_handle(ChainID chain_id, DebugHandle debug_handle) {
    chain_id_ = chain_id;
    debug_handle_ = debug_handle;
  }
  ChainID current_chain_id() { return chain_id_; }
  DebugHandle current_debug_handle() { return debug_handle_; }

  void set_bundled_input_index(int bundled_input_index) {
    bundled_input_index_ = bundled_input_index;
  }
  int bundled_input_index() { return bundled_input_index_; }

  void set_event_tracer_debug_level(EventTracerDebugLogLevel log_level) {
    debug_level_ = log_level;
  }
  EventTracerDebugLogLevel event_tracer_debug_level() { return debug_level_; }

  void set_event_tracer_profiling_level(EventTracerProfilingLevel profiling_level) {
    profiling_level_ = profiling_level;
  }
  EventTracerProfilingLevel event_tracer_profiling_level() { return profiling_level_; }

  /// Whether outputs of single instructions are recorded.
  bool intermediate_outputs_logging_status() {
    return debug_level_ >= EventTracerDebugLogLevel::kIntermediateOutputs;
  }

  virtual ~EventTracer() {}

 protected:
  ChainID chain_id_ = kUnsetChainId;
  DebugHandle debug_handle_ = kUnsetDebugHandle;
  int bundled_input_index_ = kUnsetBundledInputIndex;
  EventTracerDebugLogLevel debug_level_ = EventTracerDebugLogLevel::kNoLogging;
  EventTracerProfilingLevel profiling_level_ = EventTracerProfilingLevel::kProfileAllEvents;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::AllocatorID;
using ::executorch::runtime::ChainID;
using ::executorch::runtime::DebugHandle;
using ::executorch::runtime::DelegateDebugIdType;
using ::executorch::runtime::DelegateDebugIntId;
using ::executorch::runtime::EventTracer;
using ::executorch::runtime::EventTracerDebugLogLevel;
using ::executorch::runtime::EventTracerEntry;
using ::executorch::runtime::EventTracerFilterBase;
using ::executorch::runtime::EventTracerProfilingLevel;
using ::executorch::runtime::kUnsetBundledInputIndex;
using ::executorch::runtime::kUnsetChainId;
using ::executorch::runtime::kUnsetDebugHandle;
using ::executorch::runtime::kUnsetDelegateDebugIntId;
using ::executorch::runtime::LoggedEValueType;
}  // namespace torch::executor
