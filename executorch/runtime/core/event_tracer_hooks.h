/// The functions by which the runtime reports to an EventTracer. A null tracer costs one branch.
/// Where ET_EVENT_TRACER_DISABLED is defined (-DEXECUTORCH_ENABLE_EVENT_TRACER=OFF) no tracer is
/// attached and compilers drop the hooks; types stay as they are.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime::internal {

constexpr bool event_tracer_enabled() {
#ifdef ET_EVENT_TRACER_DISABLED
  return false;
#else
  return true;
#endif
}

/// The tracer to report to, null for none.
constexpr EventTracer* attached(EventTracer* event_tracer) {
  return event_tracer_enabled() ? event_tracer : nullptr;
}

/// Reports its own lifetime as the event of an operator, unless only methods are profiled.
class EventTracerProfileOpScope final {
 public:
  EventTracerProfileOpScope(EventTracer* event_tracer, const char* name,
                            ChainID chain_id = kUnsetChainId,
                            DebugHandle debug_handle = kUnsetDebugHandle)
      : event_tracer_(attached(event_tracer) != nullptr &&
                              event_tracer->event_tracer_profiling_level() >
                                  EventTracerProfilingLevel::kProfileMethodOnly
                          ? event_tracer
                          : nullptr) {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) {
      event_entry_ = event_tracer_->start_profiling(name, chain_id, debug_handle);
    }
  }
  ~EventTracerProfileOpScope() {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) event_tracer_->end_profiling(event_entry_);
  }
  EventTracerProfileOpScope(const EventTracerProfileOpScope&) = delete;
  EventTracerProfileOpScope& operator=(const EventTracerProfileOpScope&) = delete;

 private:
  EventTracer* event_tracer_;
  EventTracerEntry event_entry_;
};

using EventTracerProfileScope = EventTracerProfileOpScope;

/// Reports its own lifetime as the event of a method, at every profiling level.
class EventTracerProfileMethodScope final {
 public:
  EventTracerProfileMethodScope(EventTracer* event_tracer, const char* name,
                                ChainID chain_id = kUnsetChainId,
                                DebugHandle debug_handle = kUnsetDebugHandle)
      : event_tracer_(event_tracer) {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) {
      event_entry_ = event_tracer_->start_profiling(name, chain_id, debug_handle);
    }
  }
  ~EventTracerProfileMethodScope() {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) event_tracer_->end_profiling(event_entry_);
  }
  EventTracerProfileMethodScope(const EventTracerProfileMethodScope&) = delete;
  EventTracerProfileMethodScope& operator=(const EventTracerProfileMethodScope&) = delete;

 private:
  EventTracer* event_tracer_;
  EventTracerEntry event_entry_;
};

/// During its lifetime, events belong to one instruction.
class EventTracerProfileInstructionScope final {
 public:
  EventTracerProfileInstructionScope(EventTracer* event_tracer, ChainID chain_idx,
                                     DebugHandle debug_handle)
      : event_tracer_(event_tracer) {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) {
      event_tracer_->set_chain_debug_handle(chain_idx, debug_handle);
    }
  }
  ~EventTracerProfileInstructionScope() {
    if (ET_UNLIKELY(attached(event_tracer_) != nullptr)) {
      event_tracer_->set_chain_debug_handle(kUnsetChainId, kUnsetDebugHandle);
    }
  }
  EventTracerProfileInstructionScope(const EventTracerProfileInstructionScope&) = delete;
  EventTracerProfileInstructionScope& operator=(const EventTracerProfileInstructionScope&) = delete;

 private:
  EventTracer* event_tracer_;
};

inline void event_tracer_create_event_block(EventTracer* event_tracer, const char* name) {
  if (attached(event_tracer) != nullptr) event_tracer->create_event_block(name);
}

inline EventTracerEntry event_tracer_begin_profiling_event(EventTracer* event_tracer,
                                                           const char* name) {
  return attached(event_tracer) != nullptr ? event_tracer->start_profiling(name)
                                           : EventTracerEntry();
}

inline void event_tracer_end_profiling_event(EventTracer* event_tracer, EventTracerEntry event) {
  if (attached(event_tracer) != nullptr) event_tracer->end_profiling(event);
}

inline AllocatorID event_tracer_track_allocator(EventTracer* event_tracer, const char* name) {
  return attached(event_tracer) != nullptr ? event_tracer->track_allocator(name) : 0;
}

inline void event_tracer_track_allocation(EventTracer* event_tracer, AllocatorID id, size_t size) {
  if (attached(event_tracer) != nullptr) event_tracer->track_allocation(id, size);
}

/// Records an intermediate value of the program, at level kIntermediateOutputs. If that fails, the
/// tracer reports it; the program goes on.
inline void event_tracer_log_evalue(EventTracer* event_tracer, const EValue& evalue) {
  if (attached(event_tracer) != nullptr &&
      event_tracer->event_tracer_debug_level() >= EventTracerDebugLogLevel::kIntermediateOutputs) {
    (void)event_tracer->log_evalue(evalue, LoggedEValueType::kIntermediateOutput);
  }
}

/// Records an output of the program, from level kProgramOutputs on.
inline void event_tracer_log_evalue_output(EventTracer* event_tracer, const EValue& evalue) {
  if (attached(event_tracer) != nullptr &&
      event_tracer->event_tracer_debug_level() >= EventTracerDebugLogLevel::kProgramOutputs) {
    (void)event_tracer->log_evalue(evalue, LoggedEValueType::kProgramOutput);
  }
}

inline void event_tracer_set_bundled_input_index(EventTracer* event_tracer,
                                                 int bundled_input_index) {
  if (attached(event_tracer) != nullptr) event_tracer->set_bundled_input_index(bundled_input_index);
}

}  // namespace executorch::runtime::internal

namespace torch::executor::internal {
using ::executorch::runtime::internal::event_tracer_begin_profiling_event;
using ::executorch::runtime::internal::event_tracer_create_event_block;
using ::executorch::runtime::internal::event_tracer_enabled;
using ::executorch::runtime::internal::event_tracer_end_profiling_event;
using ::executorch::runtime::internal::event_tracer_log_evalue;
using ::executorch::runtime::internal::event_tracer_log_evalue_output;
using ::executorch::runtime::internal::event_tracer_set_bundled_input_index;
using ::executorch::runtime::internal::event_tracer_track_allocation;
using ::executorch::runtime::internal::event_tracer_track_allocator;
using ::executorch::runtime::internal::EventTracerProfileInstructionScope;
using ::executorch::runtime::internal::EventTracerProfileMethodScope;
using ::executorch::runtime::internal::EventTracerProfileOpScope;
using ::executorch::runtime::internal::EventTracerProfileScope;
}  // namespace torch::executor::internal
