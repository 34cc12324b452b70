#pragma once

#include <executorch/extension/memory_allocator/memory_allocator_utils.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace executorch {
namespace extension {

/// Takes every allocation from malloc, so it needs no size in advance. reset() and the destructor
/// free everything. Not safe to share between threads.
class MallocMemoryAllocator : public runtime::MemoryAllocator {
 public:
  MallocMemoryAllocator() : MemoryAllocator(0, nullptr) {}
  ~MallocMemoryAllocator() override { free_all(); }

  MallocMemoryAllocator(const MallocMemoryAllocator&) = delete;
  MallocMemoryAllocator& operator=(const MallocMemoryAllocator&) = delete;

  /// Null, after a message, when memory runs out or `alignment` is not a power of two.
  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    const auto padded = utils::get_aligned_size(size, alignment);
    if (!padded.ok() || padded.get() > SIZE_MAX - sizeof(Block)) {
      ET_LOG(Error, "malloc allocator: cannot align %zu bytes to %zu", size, alignment);
      return nullptr;
    }
    void* const memory = std::malloc(sizeof(Block) + padded.get());
    if (memory == nullptr) {
      ET_LOG(Error, "malloc allocator: no memory for %zu bytes", padded.get());
      return nullptr;
    }
    last_ = new (memory) Block{last_};
    return alignPointer(last_ + 1, alignment);
  }

  void reset() override { free_all(); }

 private:
  // What precedes the memory that is given out.
  struct alignas(std::max_align_t) Block {
    Block* before;
  };

  void free_all() {
    while (last_ != nullptr) {
      std::free(std::exchange(last_, last_->before));
    }
  }

  Block* last_ = nullptr;
};

}  // namespace extension
}  // namespace executorch

namespace torch {
namespace executor {
namespace util {
using ::executorch::extension::MallocMemoryAllocator;
}  // namespace util
}  // namespace executor
}  // namespace torch
