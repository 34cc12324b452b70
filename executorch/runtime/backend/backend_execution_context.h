#pragma once

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/temp_memory.h>

#include <cstdint>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// The context of a backend's execute(). All pointers are borrowed and may be null. `fallback` is
/// used when `temp_allocator` has no room.
class BackendExecutionContext final {
 public:
  BackendExecutionContext(EventTracer* event_tracer = nullptr,
                          MemoryAllocator* temp_allocator = nullptr,
                          const char* method_name = nullptr, MemoryAllocator* fallback = nullptr)
      : event_tracer_(event_tracer),
        temp_memory_(temp_allocator, fallback),
        method_name_(method_name) {}

  EventTracer* event_tracer() { return event_tracer_; }

  /// Memory that lives until execute() returns; null when there is none left or no allocator, or
  /// the sum of this call exceeds ET_MAX_SCRATCH_BYTES.
  void* allocate(size_t size, size_t alignment = MemoryAllocator::kDefaultAlignment) {
    return temp_memory_.allocator() != nullptr ? temp_memory_.allocate(size, alignment) : nullptr;
  }
  MemoryAllocator* get_temp_allocator() { return temp_memory_.allocator(); }

  const char* get_method_name() const { return method_name_; }

  /// Reports the work of this call beyond reading and writing its arguments once. A step is what
  /// one thread does in about a nanosecond. The work of loops is limited: Method::set_max_work().
  void add_steps(uint64_t steps) {
    steps_ = steps < UINT64_MAX - steps_ ? steps_ + steps : UINT64_MAX;
  }
  uint64_t steps() const { return steps_; }

 private:
  EventTracer* event_tracer_;
  runtime::internal::TempMemory temp_memory_;
  const char* method_name_;
  uint64_t steps_ = 0;
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::BackendExecutionContext;
}  // namespace torch::executor
