/// The memory that one method works in. Everything here belongs to the caller and must outlive
/// every method that is loaded with it.
#pragma once

#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime {

class MemoryManager final {
 public:
  /// method_allocator  what lives as long as the method: values, instructions, delegates' state
  /// planned_memory    arena k holds memory id k + 1 of the program, at least
  ///                   MethodMeta::memory_planned_buffer_size(k) bytes; null if there are none
  /// temp_allocator    scratch of kernels and delegates, reset after every instruction; the heap of
  ///                   the platform serves what it has no room for, or all if it is null. Must
  ///                   not be the method allocator.
  explicit MemoryManager(MemoryAllocator* method_allocator,
                         HierarchicalAllocator* planned_memory = nullptr,
                         MemoryAllocator* temp_allocator = nullptr)
      : method_allocator_(method_allocator),
        planned_memory_(planned_memory),
        temp_allocator_(temp_allocator) {
    ET_CHECK_MSG(method_allocator != temp_allocator || method_allocator == nullptr,
                 "method and temporary allocator must differ");
  }

  /// The argument order of older releases. The constant allocator is not used.
  ET_DEPRECATED MemoryManager(MemoryAllocator* /*constant_allocator*/,
                              HierarchicalAllocator* non_constant_allocator,
                              MemoryAllocator* runtime_allocator,
                              MemoryAllocator* temporary_allocator)
      : MemoryManager(runtime_allocator, non_constant_allocator, temporary_allocator) {}

  MemoryAllocator* method_allocator() const { return method_allocator_; }
  HierarchicalAllocator* planned_memory() const { return planned_memory_; }
  MemoryAllocator* temp_allocator() const { return temp_allocator_; }

  /// The device of each arena; empty if all are in CPU memory.
  Span<const etensor::Device> planned_buffer_devices() const {
    return planned_memory_ == nullptr ? Span<const etensor::Device>()
                                      : planned_memory_->planned_buffer_devices();
  }
  bool has_device_memory() const {
    for (const etensor::Device& device : planned_buffer_devices()) {
      if (!device.is_cpu()) return true;
    }
    return false;
  }

 private:
  MemoryAllocator* method_allocator_;
  HierarchicalAllocator* planned_memory_;
  MemoryAllocator* temp_allocator_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MemoryManager;
}  // namespace torch::executor
