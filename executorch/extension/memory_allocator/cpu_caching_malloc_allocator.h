#pragma once

#include <executorch/runtime/core/memory_allocator.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace executorch::extension {

template <typename T, unsigned N>
using SmallVector = std::vector<T>;
template <typename KeyType, typename ValueType>
using FlatHashMap = std::unordered_map<KeyType, ValueType>;

constexpr size_t kCachingAllocatorDefaultAlignment = 64;

/// Takes memory from the heap and keeps what reset() returns, by size, for the next allocation of
/// that size: a method that runs again and again asks the heap only the first time. As soon as
/// more than `max_size` bytes would be kept, reset() gives everything back instead.
/// Threads may call it at once. reset() takes back what all of them have: methods that run at the
/// same time each need a temporary allocator of their own.
class CPUCachingAllocator : public runtime::MemoryAllocator {
 public:
  explicit CPUCachingAllocator(uint32_t max_size);
  ~CPUCachingAllocator() override;

  CPUCachingAllocator(const CPUCachingAllocator&) = delete;
  CPUCachingAllocator& operator=(const CPUCachingAllocator&) = delete;

  /// Aligned to at least kCachingAllocatorDefaultAlignment. Null, after a message, when memory runs
  /// out or `alignment` is not a power of two.
  void* allocate(size_t size, size_t alignment = kCachingAllocatorDefaultAlignment) override;
  void reset() override;

 private:
  struct Block {
    void* data;
    size_t size;
    size_t alignment;
  };

  void* take(size_t size, size_t alignment);
  static void release(const Block& block);
  void release_cached();
  void release_in_use();

  std::mutex mutex_;
  const size_t max_size_;
  size_t cached_bytes_ = 0;
  FlatHashMap<size_t, std::vector<Block>> cached_;  // by size
  std::vector<Block> in_use_;
};

}  // namespace executorch::extension
