/// How a delegate reports to an EventTracer. An operation is named by `name`, or by
/// `delegate_debug_id` when that is null. As event_tracer_hooks.h says, a null tracer costs one
/// branch.
#pragma once

#include <type_traits>

#include <executorch/runtime/core/event_tracer_hooks.h>

namespace executorch::runtime {

inline EventTracerEntry event_tracer_start_profiling_delegate(EventTracer* event_tracer,
                                                              const char* name,
                                                              DebugHandle delegate_debug_id) {
  return internal::attached(event_tracer) != nullptr
             ? event_tracer->start_profiling_delegate(
                   name, static_cast<DelegateDebugIntId>(delegate_debug_id))
             : EventTracerEntry();
}

/// `metadata` is `metadata_len` bytes that the reader of the trace understands; copied.
inline void event_tracer_end_profiling_delegate(EventTracer* event_tracer,
                                                EventTracerEntry event_tracer_entry,
                                                const void* metadata = nullptr,
                                                size_t metadata_len = 0) {
  if (internal::attached(event_tracer) != nullptr) {
    event_tracer->end_profiling_delegate(event_tracer_entry, metadata, metadata_len);
  }
}

/// For times that are known only afterwards, in platform ticks.
inline void event_tracer_log_profiling_delegate(EventTracer* event_tracer, const char* name,
                                                DebugHandle delegate_debug_id,
                                                et_timestamp_t start_time, et_timestamp_t end_time,
                                                const void* metadata = nullptr,
                                                size_t metadata_len = 0) {
  if (internal::attached(event_tracer) != nullptr) {
    event_tracer->log_profiling_delegate(name, static_cast<DelegateDebugIntId>(delegate_debug_id),
                                         start_time, end_time, metadata, metadata_len);
  }
}

/// Records an operation's output, at level kIntermediateOutputs.
template <typename T>
void event_tracer_log_output_delegate(EventTracer* event_tracer, const char* name,
                                      DebugHandle delegate_debug_id, const T& output) {
  static_assert(std::is_same_v<T, int> || std::is_same_v<T, bool> || std::is_same_v<T, double> ||
                    std::is_same_v<T, aten::Tensor> || std::is_same_v<T, ArrayRef<aten::Tensor>>,
                "an output is an int, a bool, a double, a Tensor or an ArrayRef<Tensor>");
  if (internal::attached(event_tracer) != nullptr &&
      event_tracer->intermediate_outputs_logging_status()) {
    (void)event_tracer->log_intermediate_output_delegate(
        name, static_cast<DelegateDebugIntId>(delegate_debug_id), output);
  }
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::event_tracer_end_profiling_delegate;
using ::executorch::runtime::event_tracer_log_output_delegate;
using ::executorch::runtime::event_tracer_log_profiling_delegate;
using ::executorch::runtime::event_tracer_start_profiling_delegate;
}  // namespace torch::executor
