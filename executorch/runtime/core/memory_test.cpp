// Allocators, planned memory and device memory.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <executorch/runtime/core/device_memory_buffer.h>
#include <executorch/runtime/core/heap_allocator.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/temp_memory.h>
#include <executorch/runtime/core/tensor_layout.h>

namespace executorch::runtime {
namespace {

TEST(MemoryAllocator, AlignsAndStaysInsideTheBuffer) {
  alignas(64) uint8_t buffer[64];
  MemoryAllocator allocator(sizeof(buffer), buffer);
  EXPECT_EQ(allocator.allocate(1, 1), buffer);
  EXPECT_EQ(allocator.allocate(4, 16), buffer + 16);
  EXPECT_EQ(allocator.used_size(), 20u);
  EXPECT_EQ(allocator.free_size(), 44u);
  EXPECT_EQ(allocator.allocate(45, 1), nullptr);
  EXPECT_EQ(allocator.allocate(44, 1), buffer + 20);
  EXPECT_EQ(allocator.allocate(1, 1), nullptr);
  allocator.reset();
  EXPECT_EQ(allocator.allocate(64, 64), buffer);
}

TEST(MemoryAllocator, RefusesWhatCannotBe) {
  alignas(64) uint8_t buffer[64];
  MemoryAllocator allocator(sizeof(buffer), buffer);
  EXPECT_EQ(allocator.allocate(1, 0), nullptr);
  EXPECT_EQ(allocator.allocate(1, 3), nullptr);
  EXPECT_EQ(allocator.allocate(std::numeric_limits<size_t>::max(), 1), nullptr);
  EXPECT_EQ(allocator.allocateList<uint64_t>(std::numeric_limits<size_t>::max() / 4), nullptr);
  EXPECT_EQ(allocator.used_size(), 0u);
  EXPECT_NE(allocator.allocateList<uint64_t>(8), nullptr);

  MemoryAllocator none(0, nullptr);
  EXPECT_EQ(none.allocate(1), nullptr);
  EXPECT_EQ(none.allocate(0), nullptr);
}

TEST(MemoryAllocator, OverAlignmentBeyondTheEndIsRefused) {
  alignas(64) uint8_t buffer[64];
  MemoryAllocator allocator(8, buffer + 4);
  EXPECT_EQ(allocator.allocate(1, 64), nullptr);
}

// A heap that counts, and refuses what exceeds `largest`.
struct Heap {
  int pieces = 0;
  int allocations = 0;
  size_t largest = SIZE_MAX;
} heap;
void* count_allocation(size_t size) {
  if (size > heap.largest) return nullptr;
  ++heap.pieces;
  ++heap.allocations;
  return std::malloc(size);
}
void count_free(void* memory) {
  heap.pieces -= memory != nullptr ? 1 : 0;
  std::free(memory);
}

class HeapAllocatorTest : public ::testing::Test {
 protected:
  using Allocator = internal::HeapAllocator<&count_allocation, &count_free>;
#ifdef ET_INTERNAL_ASAN
  static constexpr bool kKeeps = false;
#else
  static constexpr bool kKeeps = true;
#endif
  void SetUp() override {
    heap = Heap{};
  }

  // Allocations of the heap that a round of `sizes` takes.
  int round(const std::vector<size_t>& sizes) {
    const int before = heap.allocations;
    for (const size_t size : sizes) {
      void* const memory = allocator_->allocate(size, 64);
      EXPECT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
      std::memset(memory, 0xab, size);
    }
    allocator_->reset();
    return heap.allocations - before;
  }

  std::optional<Allocator> allocator_{std::in_place};
};

TEST_F(HeapAllocatorTest, KeepsOneBlockOfWhatARoundNeeds) {
  EXPECT_EQ(round({100, 5000, 1}), 3);
  EXPECT_EQ(heap.pieces, 0);
  EXPECT_EQ(round({100, 5000, 1}), kKeeps ? 1 : 3);
  EXPECT_EQ(round({100, 5000, 1}), kKeeps ? 0 : 3);
  EXPECT_EQ(round({5000, 100}), kKeeps ? 0 : 2);
  EXPECT_EQ(heap.pieces, kKeeps ? 1 : 0);
  allocator_.reset();
  EXPECT_EQ(heap.pieces, 0);
}

TEST_F(HeapAllocatorTest, GrowsInStepsLargerThanTheNeed) {
  int allocations = 0;
  for (size_t i = 0; i < 1000; ++i) allocations += round({100000 + 64 * i});
  EXPECT_LE(allocations, kKeeps ? 12 : 1000);
}

TEST_F(HeapAllocatorTest, GivesBackABlockThatIsMuchTooLarge) {
  EXPECT_EQ(round({1 << 20}), 1);
  EXPECT_EQ(round({1 << 20}), 1);
  heap.largest = 1 << 16;  // the large block is never taken again
  for (int i = 0; i < 40000; ++i) round({1000});
  EXPECT_EQ(round({1000}), kKeeps ? 0 : 1);
  EXPECT_EQ(heap.pieces, kKeeps ? 1 : 0);
  EXPECT_EQ(heap.allocations, kKeeps ? 3 : 40003);
}

TEST_F(HeapAllocatorTest, RefusesWhatCannotBe) {
  round({1000});
  for (int kept = 0; kept < 2; ++kept) {
    EXPECT_EQ(allocator_->allocate(8, 0), nullptr);
    EXPECT_EQ(allocator_->allocate(8, 12), nullptr);
    EXPECT_EQ(allocator_->allocate(SIZE_MAX, 64), nullptr);
    EXPECT_EQ(allocator_->allocate(SIZE_MAX - 64, 64), nullptr);
    EXPECT_NE(allocator_->allocate(0, 1), nullptr);
    EXPECT_NE(allocator_->allocate(1, 1), nullptr);
  }
  heap.largest = 0;
  EXPECT_EQ(allocator_->allocate(100000), nullptr);
}

TEST_F(HeapAllocatorTest, GoesOnWithoutTheBlockIfTheHeapHasNone) {
  heap.largest = 6000;
  round({5000, 5000});
  EXPECT_EQ(round({5000, 5000}), 2);
  EXPECT_EQ(heap.pieces, 0);
}

TEST_F(HeapAllocatorTest, ServesWhatTheCallersBufferCannot) {
  alignas(64) uint8_t buffer[64];
  MemoryAllocator small(sizeof(buffer), buffer);
  internal::TempMemory memory(&small, &*allocator_);
  EXPECT_EQ(memory.allocator(), &small);
  EXPECT_EQ(memory.allocate(32, 8), buffer);
  EXPECT_NE(memory.allocate(64, 8), nullptr);
  EXPECT_EQ(heap.pieces, 1);
  EXPECT_EQ(memory.allocate(8, 8), buffer + 32);

  internal::TempMemory without(nullptr, &*allocator_);
  EXPECT_EQ(without.allocator(), &*allocator_);
  EXPECT_NE(without.allocate(64, 8), nullptr);
  EXPECT_EQ(heap.pieces, 2);
}

TEST_F(HeapAllocatorTest, ACallMayTakeSoMuchInAll) {
  constexpr size_t kMost = size_t{1} << 30;
  internal::TempMemory memory(nullptr, &*allocator_);
  heap.largest = 1000;  // whatever the machine has
  EXPECT_EQ(memory.allocate(SIZE_MAX, 8), nullptr);
  EXPECT_EQ(memory.allocate(kMost + 1, 8), nullptr);
  EXPECT_EQ(memory.allocate(kMost, 8), nullptr);  // the heap's refusal counts nothing
  ASSERT_NE(memory.allocate(100, 8), nullptr);
  heap.largest = SIZE_MAX;
  EXPECT_EQ(memory.allocate(kMost - 99, 8), nullptr);
  EXPECT_EQ(heap.pieces, 1);
  internal::TempMemory next(nullptr, &*allocator_);
  EXPECT_NE(next.allocate(100, 8), nullptr);
}

TEST(HierarchicalAllocator, AddressIsBufferPlusOffset) {
  uint8_t first[8];
  uint8_t second[16];
  Span<uint8_t> buffers[] = {first, second};
  HierarchicalAllocator allocator(buffers);
  EXPECT_EQ(*allocator.get_offset_address(1, 8, 8), second + 8);
  EXPECT_EQ(*allocator.get_offset_address(0, 8, 0), first + 8);
}

TEST(HierarchicalAllocator, RejectsBuffersThatAreNull) {
  Span<uint8_t> buffers[] = {{nullptr, 16}, {nullptr, size_t{0}}};
  HierarchicalAllocator allocator({buffers, 2});
  EXPECT_EQ(allocator.get_offset_address(0, 0, 8).error(), Error::InvalidArgument);
  EXPECT_TRUE(allocator.get_offset_address(1, 0, 0).ok());
}

TEST(HierarchicalAllocator, RejectsOverflowingOffset) {
  uint8_t buffer[8];
  Span<uint8_t> buffers[] = {buffer};
  HierarchicalAllocator allocator(buffers);
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  EXPECT_EQ(allocator.get_offset_address(1, 0, 1).error(), Error::InvalidArgument);
  EXPECT_EQ(allocator.get_offset_address(0, kMost, 2).error(), Error::InvalidArgument);
  EXPECT_EQ(allocator.get_offset_address(0, 2, kMost).error(), Error::InvalidArgument);
  EXPECT_EQ(allocator.get_offset_address(0, 4, 5).error(), Error::MemoryAllocationFailed);
}

TEST(HierarchicalAllocator, LegacyConstructorTakesWholeBuffers) {
  uint8_t buffer[8];
  MemoryAllocator allocators[1] = {{sizeof(buffer), buffer}};
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  HierarchicalAllocator allocator(1, allocators);
  EXPECT_EQ(*allocator.get_offset_address(0, 3, 5), buffer + 3);
}

TEST(HierarchicalAllocatorDeathTest, LegacyConstructorStopsOnNoAllocators) {
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  EXPECT_DEATH(HierarchicalAllocator(3, nullptr),
               "3 allocators at .*; expected at most 16, and an address");
}

TEST(TensorLayout, ChecksWhatItIsGiven) {
  const int32_t sizes[] = {2, 3};
  const uint8_t order[] = {1, 0};
  const uint8_t twice[] = {0, 0};
  const int32_t negative[] = {2, -3};
  const auto type = aten::ScalarType::Short;
  EXPECT_EQ(TensorLayout::create(sizes, order, type)->nbytes(), 12u);
  EXPECT_EQ(TensorLayout::create(sizes, twice, type).error(), Error::InvalidArgument);
  EXPECT_EQ(TensorLayout::create(negative, order, type).error(), Error::InvalidArgument);
  EXPECT_EQ(TensorLayout::create(sizes, {order, 1}, type).error(), Error::InvalidArgument);
  EXPECT_EQ(TensorLayout::create(sizes, order, aten::ScalarType::Undefined).error(),
            Error::InvalidArgument);
  const int32_t huge[] = {INT32_MAX, INT32_MAX, INT32_MAX};
  const uint8_t order3[] = {0, 1, 2};
  EXPECT_EQ(TensorLayout::create(huge, order3, type).error(), Error::InvalidArgument);
}

/// Device memory that is host memory, and counts what is alive.
class CountingAllocator : public DeviceAllocator {
 public:
  Result<void*> allocate(size_t nbytes, etensor::DeviceIndex, size_t) override {
    ++alive;
    return static_cast<void*>(new uint8_t[nbytes]);
  }
  void deallocate(void* ptr, etensor::DeviceIndex) override {
    --alive;
    delete[] static_cast<uint8_t*>(ptr);
  }
  Error copy_host_to_device(void*, const void*, size_t, etensor::DeviceIndex) override {
    return Error::NotImplemented;
  }
  Error copy_device_to_host(void*, const void*, size_t, etensor::DeviceIndex) override {
    return Error::NotImplemented;
  }
  etensor::DeviceType device_type() const override { return etensor::DeviceType::CUDA; }

  int alive = 0;
};

TEST(DeviceMemoryBuffer, OwnsItsMemoryThroughMoves) {
  EXPECT_EQ(DeviceMemoryBuffer::create(8, etensor::DeviceType::CUDA).error(), Error::NotFound);
  static CountingAllocator allocator;
  register_device_allocator(&allocator);
  {
    Result<DeviceMemoryBuffer> made = DeviceMemoryBuffer::create(8, etensor::DeviceType::CUDA);
    ASSERT_TRUE(made.ok());
    DeviceMemoryBuffer buffer = std::move(*made);
    EXPECT_EQ(buffer.as_span().size(), 8u);
    buffer = DeviceMemoryBuffer();
    EXPECT_EQ(allocator.alive, 0);
    EXPECT_EQ(buffer.size(), 0u);
  }
  EXPECT_EQ(allocator.alive, 0);
}

}  // namespace
}  // namespace executorch::runtime
