#pragma once

#include <executorch/runtime/core/memory_allocator.h>

#include <cstddef>

namespace executorch {
namespace runtime {
namespace internal {

/// What one call of a kernel or delegate may use beside its arguments, until it returns.
class TempMemory {
 public:
  /// Taken from `allocator`, and from `fallback` where the former is null or a buffer with too
  /// little left. Both are borrowed and may be null.
  TempMemory(MemoryAllocator* allocator, MemoryAllocator* fallback);

  /// The one asked first; null if there is none at all.
  MemoryAllocator* allocator() const { return allocator_; }

  /// Null, after a message, when both refuse or the call's sum exceeds ET_MAX_SCRATCH_BYTES.
  void* allocate(size_t size, size_t alignment);

 private:
  MemoryAllocator* allocator_;
  MemoryAllocator* fallback_;
  size_t taken_ = 0;
};

}  // namespace internal
}  // namespace runtime
}  // namespace executorch
