#include <executorch/runtime/core/memory_allocator.h>

namespace executorch::runtime {

MemoryAllocator::MemoryAllocator(uint32_t size, uint8_t* base_address)
    : begin_(base_address), end_(base_address + size), cur_(base_address), size_(size) {
  ET_CHECK_MSG(base_address != nullptr || size == 0, "%u bytes at a null address",
               static_cast<unsigned>(size));
}

void* MemoryAllocator::take(size_t size, size_t alignment) {
  if (!isPowerOf2(alignment)) {
    ET_LOG(Error, "MemoryAllocator: alignment %zu is not a power of two", alignment);
    return nullptr;
  }
  const size_t left = free_size();
  const size_t padding = static_cast<size_t>(alignPointer(cur_, alignment) - cur_);
  if (begin_ == nullptr || padding > left || size > left - padding) {
    ET_LOG(Error, "MemoryAllocator: cannot give %zu bytes (and %zu for alignment): %zu of %u left",
           size, padding, left, static_cast<unsigned>(size_));
    return nullptr;
  }
  uint8_t* start = cur_ + padding;
  cur_ = start + size;
  return start;
}

void* MemoryAllocator::allocate_array(size_t n, size_t element_bytes, size_t alignment) {
  size_t bytes;
  if (__builtin_mul_overflow(n, element_bytes, &bytes)) {
    ET_LOG(Error, "MemoryAllocator: %zu elements of %zu bytes exceed the address space", n,
           element_bytes);
    return nullptr;
  }
  return allocate(bytes, alignment);
}

}  // namespace executorch::runtime
