#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>

#include <cstdint>

namespace executorch {
namespace runtime {
namespace internal {

/// Takes each allocation from the platform's heap and gives all of them back in `reset()` and on
/// destruction. The scratch allocator of methods whose caller provides none.
class PlatformMemoryAllocator final : public MemoryAllocator {
 public:
  PlatformMemoryAllocator() : MemoryAllocator(0, nullptr) {}
  PlatformMemoryAllocator(const PlatformMemoryAllocator&) = delete;
  PlatformMemoryAllocator& operator=(const PlatformMemoryAllocator&) = delete;
  ~PlatformMemoryAllocator() override { free_all(); }

  /// Null if the alignment is no power of two or the heap is exhausted.
  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    const size_t overhead = sizeof(Block) + alignment;
    if (!isPowerOf2(alignment) || size > SIZE_MAX - overhead) {
      ET_LOG(Error, "cannot allocate %zu bytes aligned to %zu", size, alignment);
      return nullptr;
    }
    auto* block = static_cast<Block*>(pal_allocate(size + overhead));
    if (block == nullptr) {
      ET_LOG(Error, "the platform has no %zu bytes", size + overhead);
      return nullptr;
    }
    block->next = blocks_;
    blocks_ = block;
    return alignPointer(block + 1, alignment);
  }

  void reset() override { free_all(); }

 private:
  struct Block {
    Block* next;
  };

  void free_all() {
    while (blocks_ != nullptr) {
      Block* const next = blocks_->next;
      pal_free(blocks_);
      blocks_ = next;
    }
  }

  Block* blocks_ = nullptr;
};

}  // namespace internal
}  // namespace runtime
}  // namespace executorch
