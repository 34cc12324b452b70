#include <executorch/extension/memory_allocator/cpu_caching_malloc_allocator.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <new>

namespace executorch::extension {

CPUCachingAllocator::CPUCachingAllocator(uint32_t max_size)
    : MemoryAllocator(0, nullptr), max_size_(max_size) {}

CPUCachingAllocator::~CPUCachingAllocator() {
  release_cached();
  release_in_use();
}

void* CPUCachingAllocator::allocate(size_t size, size_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    ET_LOG(Error, "caching allocator: alignment %zu is not a power of two", alignment);
    return nullptr;
  }
  alignment = std::max(alignment, kCachingAllocatorDefaultAlignment);
  // The aligned operator new rounds up without looking.
  if (size > SIZE_MAX - alignment) {
    ET_LOG(Error, "caching allocator: %zu bytes exceed the address space", size);
    return nullptr;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto result = runtime::catch_allocation_failure(
      "caching allocator", [&]() -> runtime::Result<void*> { return take(size, alignment); });
  return result.ok() ? result.get() : nullptr;
}

// What may throw comes before anything is taken.
void* CPUCachingAllocator::take(size_t size, size_t alignment) {
  in_use_.emplace_back();
  Block& block = in_use_.back();
  const auto cached = cached_.find(size);
  if (cached != cached_.end()) {
    std::vector<Block>& reusable = cached->second;
    const auto fits = std::find_if(reusable.begin(), reusable.end(),
                                   [&](const Block& b) { return b.alignment >= alignment; });
    if (fits != reusable.end()) {
      block = *fits;
      reusable.erase(fits);
      cached_bytes_ -= size;
      return block.data;
    }
  }
  void* data = ::operator new(size, std::align_val_t(alignment), std::nothrow);
  if (data == nullptr) {
    // What is kept for later may be what is missing now.
    release_cached();
    data = ::operator new(size, std::align_val_t(alignment), std::nothrow);
  }
  if (data == nullptr) {
    ET_LOG(Error, "caching allocator: no memory for %zu bytes", size);
    in_use_.pop_back();
    return nullptr;
  }
  block = {data, size, alignment};
  return data;
}

void CPUCachingAllocator::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const runtime::Error error = runtime::catch_allocation_failure("caching allocator", [&] {
    for (; !in_use_.empty(); in_use_.pop_back()) {
      const Block& block = in_use_.back();
      cached_[block.size].push_back(block);
      cached_bytes_ += block.size;
    }
    return runtime::Error::Ok;
  });
  if (error != runtime::Error::Ok || cached_bytes_ > max_size_) release_cached();
  release_in_use();
}

void CPUCachingAllocator::release_in_use() {
  for (const Block& block : in_use_) release(block);
  in_use_.clear();
}

void CPUCachingAllocator::release(const Block& block) {
  ::operator delete(block.data, std::align_val_t(block.alignment));
}

void CPUCachingAllocator::release_cached() {
  for (const auto& [size, blocks] : cached_) {
    for (const Block& block : blocks) release(block);
  }
  cached_.clear();
  cached_bytes_ = 0;
}

}  // namespace executorch::extension
