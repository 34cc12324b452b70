#include <executorch/runtime/core/temp_memory.h>

// The most bytes that one call may take: a file's shapes decide how many it asks for.
#ifndef ET_MAX_SCRATCH_BYTES
#define ET_MAX_SCRATCH_BYTES (size_t{1} << 30)
#endif

namespace executorch::runtime::internal {

TempMemory::TempMemory(MemoryAllocator* allocator, MemoryAllocator* fallback)
    : allocator_(allocator != nullptr ? allocator : fallback), fallback_(fallback) {}

void* TempMemory::allocate(size_t size, size_t alignment) {
  constexpr size_t kMost = ET_MAX_SCRATCH_BYTES;
  if (size > kMost - taken_) {
    ET_LOG(Error,
           "a call needs %zu bytes of temporary memory beside %zu; ET_MAX_SCRATCH_BYTES, a macro, "
           "allows %zu",
           size, taken_, kMost);
    return nullptr;
  }
  // A buffer that is too small would say so in every call.
  const bool fits =
      allocator_->base_address() == nullptr || fallback_ == nullptr ||
      (size <= allocator_->free_size() && alignment <= allocator_->free_size() - size);
  void* memory = fits ? allocator_->allocate(size, alignment) : nullptr;
  if (memory == nullptr && fallback_ != nullptr && fallback_ != allocator_) {
    memory = fallback_->allocate(size, alignment);
  }
  taken_ += memory == nullptr ? 0 : size;
  return memory;
}

}  // namespace executorch::runtime::internal
