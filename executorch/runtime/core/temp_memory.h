#pragma once

#include <executorch/runtime/core/memory_allocator.h>

#include <cstddef>

namespace executorch::runtime::internal {

/// The temporary memory of one call of a kernel or delegate, valid until it returns.
class TempMemory {
 public:
  /// Memory is taken from `allocator`, or from `fallback` if `allocator` is null or a buffer that
  /// has too little left. Both are borrowed and may be null.
  TempMemory(MemoryAllocator* allocator, MemoryAllocator* fallback);

  /// The allocator that is asked first; null if there is none at all.
  MemoryAllocator* allocator() const { return allocator_; }

  /// Allocates `size` bytes. Logs a message and returns null if both allocators refuse, or if the
  /// sum of this call's allocations exceeds ET_MAX_SCRATCH_BYTES.
  void* allocate(size_t size, size_t alignment);

 private:
  MemoryAllocator* allocator_;
  MemoryAllocator* fallback_;
  size_t taken_ = 0;
};

}  // namespace executorch::runtime::internal
