#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/event_tracer_hooks.h>  // for kernels that include only this
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/core/temp_memory.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstdint>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// The context of one call of a kernel: the kernel reports failure to it, and takes memory from it
/// that lives until the call ends.
class KernelRuntimeContext {
 public:
  /// All arguments are borrowed and may be null. `fallback` is used when `temp_allocator` has no
  /// room.
  KernelRuntimeContext(EventTracer* event_tracer = nullptr,
                       MemoryAllocator* temp_allocator = nullptr,
                       MemoryAllocator* fallback = nullptr)
      : event_tracer_(event_tracer), temp_memory_(temp_allocator, fallback) {}

  /// Makes the method fail with `error` once the kernel returns. The kernel logs why.
  void fail(Error error) { failure_state_ = error; }
  /// Ok unless fail() was called.
  ET_NODISCARD Error failure_state() const { return failure_state_; }

  /// Called by a kernel that does the work of several instructions: tells which of them it is if
  /// the call fails, by its index in the chain and its arguments, so that messages name that one.
  void set_failed_instruction(uint32_t instruction, Span<EValue*> args) {
    failed_instruction_ = instruction;
    failed_args_ = args;
  }
  /// Sets both to what set_failed_instruction() was told; leaves them if it was not called.
  void get_failed_instruction(size_t& instruction, Span<EValue*>& args) const {
    if (failed_instruction_ != kItself) {
      instruction = failed_instruction_;
      args = failed_args_;
    }
  }

  /// Reports the work of this call beyond reading and writing its arguments once. A step is what
  /// one thread does in about a nanosecond. The work of loops is limited: Method::set_max_work().
  void add_steps(uint64_t steps) {
    steps_ = steps < UINT64_MAX - steps_ ? steps_ + steps : UINT64_MAX;
  }
  uint64_t steps() const { return steps_; }

  EventTracer* internal_event_tracer() { return event_tracer_; }

  /// Allocates memory that lives until the call ends. NotFound if there is no allocator;
  /// MemoryAllocationFailed if it is exhausted, or the sum of this call's allocations exceeds
  /// ET_MAX_SCRATCH_BYTES.
  Result<void*> allocate_temp(size_t size, size_t alignment = MemoryAllocator::kDefaultAlignment);
  /// Whether allocate_temp() has an allocator.
  bool has_temp_memory() const { return temp_memory_.allocator() != nullptr; }

 private:
  EventTracer* event_tracer_;
  runtime::internal::TempMemory temp_memory_;
  uint64_t steps_ = 0;
  Error failure_state_ = Error::Ok;
  static constexpr uint32_t kItself = UINT32_MAX;
  uint32_t failed_instruction_ = kItself;
  Span<EValue*> failed_args_;
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE

// Spellings of earlier releases.
namespace executorch::aten {
using RuntimeContext = ::executorch::ET_RUNTIME_NAMESPACE::KernelRuntimeContext;
}  // namespace executorch::aten

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::KernelRuntimeContext;
using RuntimeContext = ::executorch::ET_RUNTIME_NAMESPACE::KernelRuntimeContext;
}  // namespace torch::executor
