#pragma once

#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// The context of a backend's init(). All pointers are borrowed; only the allocator is never null.
class BackendInitContext final {
 public:
  explicit BackendInitContext(MemoryAllocator* runtime_allocator,
                              EventTracer* event_tracer = nullptr,
                              const char* method_name = nullptr,
                              const NamedDataMap* named_data_map = nullptr,
                              Span<const BackendOption> runtime_specs = {})
      : runtime_allocator_(runtime_allocator),
        event_tracer_(event_tracer),
        method_name_(method_name),
        named_data_map_(named_data_map),
        runtime_specs_(runtime_specs) {}

  /// Memory that lives as long as the method.
  MemoryAllocator* get_runtime_allocator() { return runtime_allocator_; }
  EventTracer* event_tracer() { return event_tracer_; }
  /// The method that is being loaded.
  const char* get_method_name() const { return method_name_; }
  /// Weights beside the blob.
  const NamedDataMap* get_named_data_map() const { return named_data_map_; }
  /// Options that the application gave for this load.
  Span<const BackendOption> runtime_specs() const { return runtime_specs_; }

  /// T is bool, int or const char* (borrowed). NotFound for an unknown key, InvalidArgument for an
  /// option of another type.
  template <typename T>
  Result<T> get_runtime_spec(const char* key) const {
    T value{};
    const Error error =
        runtime::internal::read_option(runtime::internal::find_option(runtime_specs_, key), value);
    if (error != Error::Ok) return error;
    return value;
  }

 private:
  MemoryAllocator* runtime_allocator_;
  EventTracer* event_tracer_;
  const char* method_name_;
  const NamedDataMap* named_data_map_;
  Span<const BackendOption> runtime_specs_;
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::BackendInitContext;
}  // namespace torch::executor
