#pragma once

#include <executorch/extension/memory_allocator/memory_allocator_utils.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

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
    if (!padded.ok()) {
      ET_LOG(Error, "malloc allocator: cannot align %zu bytes to %zu", size, alignment);
      return nullptr;
    }
    void* const block = std::malloc(padded.get() == 0 ? 1 : padded.get());
    if (block == nullptr) {
      ET_LOG(Error, "malloc allocator: no memory for %zu bytes", padded.get());
      return nullptr;
    }
    blocks_.push_back(block);
    return alignPointer(block, alignment);
  }

  void reset() override {
    free_all();
    blocks_.clear();
  }

 private:
  void free_all() {
    for (void* block : blocks_) {
      std::free(block);
    }
  }

  std::vector<void*> blocks_;
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
