#include <executorch/cpu/scratch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace executorch::cpu {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Size, RemembersThatAProductWrapped) {
  EXPECT_TRUE((Size(int64_t{1} << 31) * 2).ok());
  const Size wrapped = Size(int64_t{1} << 40) * (int64_t{1} << 40);
  EXPECT_FALSE(wrapped.ok());
  EXPECT_FALSE((wrapped * 0).ok());
  EXPECT_FALSE((wrapped - wrapped).ok());
  EXPECT_FALSE(wrapped.within(kMost));
  EXPECT_FALSE(max(wrapped, 1).ok());
}
TEST(Size, RefusesWhatNoInt64Is) {
  EXPECT_FALSE(Size(UINT64_MAX).ok());
  EXPECT_TRUE(Size(uint64_t{kMost}).ok());
  EXPECT_FALSE((Size(kMost) + 1).ok());
  EXPECT_FALSE((Size(INT64_MIN) - 1).ok());
  EXPECT_FALSE((Size(INT64_MIN) / -1).ok());
  EXPECT_FALSE((Size(1) / 0).ok());
}
TEST(Size, NarrowsOnlyWhatFits) {
  EXPECT_TRUE(Size(INT32_MAX).fits<int32_t>());
  EXPECT_FALSE((Size(INT32_MAX) + 1).fits<int32_t>());
  EXPECT_FALSE(Size(-1).fits<uint64_t>());
  EXPECT_TRUE(Size(INT64_MIN).fits<int64_t>());
  EXPECT_FALSE(Size(-1).within(10));
}
TEST(Size, RefusesLoopsThatOperandsDoNotExplain) {
  EXPECT_TRUE(is_affordable(1 << 29, 0));
  EXPECT_FALSE(is_affordable(int64_t{1} << 30, 1));
  EXPECT_TRUE(is_affordable(int64_t{1} << 30, 1 << 20));
  EXPECT_FALSE(is_affordable(Size::invalid(), kMost));
}

TEST(Scratch, GivesDisjointPiecesOnLines) {
  HeapScratch heap;
  Scratch& scratch = heap;
  char* last = nullptr;
  for (int i = 0; i < 100; ++i) {
    auto* const piece = scratch.array<char>(i * 37);
    ASSERT_NE(piece, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0u);
    EXPECT_NE(piece, last);
    std::memset(piece, i, static_cast<size_t>(i) * 37);
    last = piece;
  }
}
TEST(Scratch, ReusesWhatAFrameGaveBack) {
  HeapScratch heap(4096);
  Scratch& scratch = heap;
  for (int i = 0; i < 100; ++i) {
    const Scratch::Frame outer(scratch);
    ASSERT_NE(scratch.array<float>(100), nullptr);
    const Scratch::Frame inner(scratch);
    ASSERT_NE(scratch.array<float>(600), nullptr);
  }
}
TEST(Scratch, RefusesMoreThanItsSourceHas) {
  HeapScratch heap(1 << 20);
  Scratch& scratch = heap;
  EXPECT_EQ(scratch.array<double>(1 << 20), nullptr);
  EXPECT_EQ(scratch.array<double>(kMost), nullptr);
  EXPECT_EQ(scratch.array<char>(kMost), nullptr);
  EXPECT_EQ(scratch.array<char>(-1), nullptr);
  EXPECT_EQ(scratch.array<float>(Size::invalid()), nullptr);
  EXPECT_NE(scratch.array<double>(100), nullptr);
}
TEST(ThreadScratch, GivesEachThreadItsOwn) {
  ThreadPool pool(4);
  const UsePool use(&pool);
  HeapScratch heap;
  const ThreadScratch<int64_t> buffers(heap, 1000);
  ASSERT_TRUE(buffers);
  std::atomic<int> wrong{0};
  const auto fill = [&](int64_t begin, int64_t end, int64_t* buffer) {
    for (int64_t i = 0; i < 1000; ++i) buffer[i] = begin;
    for (int64_t i = 0; i < 1000; ++i) wrong += buffer[i] != begin;
    EXPECT_LT(begin, end);
  };
  buffers.parallel_for(400, 1, fill);
  pool.resize(8);  // there is no room for so many
  buffers.parallel_for(400, 1, fill);
  EXPECT_EQ(wrong, 0);
}
TEST(LoopScratch, GivesEachThreadItsOwnStack) {
  HeapScratch heap(1 << 20);
  for (const size_t n : {1, 4}) {
    ThreadPool pool(n);
    const UsePool use(&pool);
    std::atomic<int> wrong{0};
    for (int round = 0; round < 100; ++round) {  // which reuse the memory
      LoopScratch threads(heap);
      EXPECT_TRUE(threads.parallel_for(40, 1, [&](int64_t begin, int64_t, Scratch& own) {
        const Scratch::Frame frame(own);
        auto* const a = own.array<int64_t>(1000);
        auto* const b = own.array<int64_t>(begin * 50);
        if (a == nullptr || b == nullptr) return false;
        std::fill_n(a, 1000, begin);
        std::fill_n(b, begin * 50, -1);
        for (int64_t i = 0; i < 1000; ++i) wrong += a[i] != begin;
        return true;
      }));
    }
    EXPECT_EQ(wrong, 0);
  }
}
TEST(LoopScratch, SaysThatMemoryWasRefused) {
  for (const size_t n : {1, 3}) {
    ThreadPool pool(n);
    const UsePool use(&pool);
    HeapScratch heap(1 << 12);
    LoopScratch threads(heap);
    EXPECT_FALSE(threads.parallel_for(40, 1, [&](int64_t, int64_t, Scratch& own) {
      return own.array<char>(1 << 13) != nullptr;
    }));
  }
}

#if defined(__SANITIZE_ADDRESS__)
bool is_guarded(const void* byte) {
  return __asan_address_is_poisoned(byte) != 0;
}

TEST(Scratch, GuardsWhatIsNotHandedOut) {
  constexpr size_t kBytes = 4096;
  alignas(64) static char memory[kBytes];
  size_t used = 0;  // each block is another
  {
    const auto allocate = [](void* at, size_t bytes) -> void* {
      size_t& begin = *static_cast<size_t*>(at);
      if (bytes > kBytes - begin) return nullptr;
      void* const block = memory + begin;
      begin += (bytes + 63) / 64 * 64;
      return block;
    };
    Scratch scratch(allocate, &used);
    const Scratch::Frame outer(scratch);
    for (const int64_t n : {64, 7, 128, 1}) {
      const char* given = nullptr;
      {
        const Scratch::Frame frame(scratch);
        const char* const piece = given = scratch.array<char>(n);
        for (int64_t i = 0; i < n; ++i) ASSERT_FALSE(is_guarded(piece + i)) << i << " of " << n;
        for (int64_t i = n; i < n + 8; ++i) ASSERT_TRUE(is_guarded(piece + i)) << i << " of " << n;
      }
      ASSERT_TRUE(is_guarded(given));
    }
  }
  for (const char& byte : memory) ASSERT_FALSE(is_guarded(&byte));
}
TEST(ThreadScratch, GuardsTheEndOfEachThreadsMemory) {
  HeapScratch heap;
  const ThreadScratch<char> buffers(heap, 64, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(is_guarded(buffers.of_thread(i) + 63));
    EXPECT_TRUE(is_guarded(buffers.of_thread(i) + 64));
  }
}
#endif

}  // namespace
}  // namespace executorch::cpu
