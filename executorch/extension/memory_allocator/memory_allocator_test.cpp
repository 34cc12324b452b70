#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
static_assert(sizeof(std::vector<int>) > 0, "comes with this header");

#include <executorch/extension/memory_allocator/cpu_caching_malloc_allocator.h>
#include <executorch/extension/memory_allocator/memory_allocator_utils.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace executorch::extension {
namespace {

template <typename Allocator>
class HeapAllocator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { runtime::runtime_init(); }
};

struct Malloc : MallocMemoryAllocator {};
struct Caching : CPUCachingAllocator {
  Caching() : CPUCachingAllocator(1 << 20) {}
};
using Allocators = ::testing::Types<Malloc, Caching>;
TYPED_TEST_SUITE(HeapAllocator, Allocators);

TYPED_TEST(HeapAllocator, AlignsAndGivesUsableMemory) {
  TypeParam allocator;
  for (const size_t alignment : {1, 2, 16, 64, 256, 4096}) {
    for (const size_t size : {0, 1, 100, 10000}) {
      void* const memory = allocator.allocate(size, alignment);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
      std::memset(memory, 0xab, size);
    }
  }
}

TYPED_TEST(HeapAllocator, GivesNullForBadAlignmentsAndImpossibleSizes) {
  TypeParam allocator;
  EXPECT_EQ(allocator.allocate(8, 0), nullptr);
  EXPECT_EQ(allocator.allocate(8, 12), nullptr);
  EXPECT_EQ(allocator.allocate(SIZE_MAX, 64), nullptr);
}

TYPED_TEST(HeapAllocator, WorksAfterReset) {
  TypeParam allocator;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(allocator.allocate(1000), nullptr);
    EXPECT_NE(allocator.allocate(1000), nullptr);
    allocator.reset();
  }
}

TEST(CPUCachingAllocator, GivesTheSameMemoryAgainAfterReset) {
  CPUCachingAllocator allocator(1 << 20);
  void* const first = allocator.allocate(1000);
  allocator.reset();
  EXPECT_EQ(allocator.allocate(1000), first);
  EXPECT_NE(allocator.allocate(1000), first);
}

TEST(CPUCachingAllocator, DoesNotReuseMemoryOfLessAlignment) {
  CPUCachingAllocator allocator(1 << 20);
  allocator.allocate(64, 64);
  allocator.reset();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(allocator.allocate(64, 4096)) % 4096, 0u);
}

TEST(GetAlignedSize, AddsRoomOnlyWhereMallocAlignsLess) {
  EXPECT_EQ(utils::get_aligned_size(100, 8).get(), 100u);
  EXPECT_EQ(utils::get_aligned_size(100, 64).get(), 163u);
  EXPECT_EQ(utils::get_aligned_size(100, 3).error(), runtime::Error::InvalidArgument);
  EXPECT_EQ(utils::get_aligned_size(SIZE_MAX, 64).error(), runtime::Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::extension
