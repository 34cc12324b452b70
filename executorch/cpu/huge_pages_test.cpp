#include <executorch/cpu/huge_pages.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace executorch::cpu {
namespace {

TEST(HugePageArena, GivesOutArraysOneAfterTheOther) {
  HugePageArena arena(1000);
  auto* const first = static_cast<char*>(arena.allocate(1));
  auto* const second = static_cast<char*>(arena.allocate(100));
  auto* const third = static_cast<char*>(arena.allocate(0));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kLine, 0u);
  EXPECT_EQ(second, first + kLine);
  EXPECT_EQ(third, second + 2 * kLine);
  std::memset(third, 1, 1000 - 3 * kLine);
}
TEST(HugePageArena, RefusesWhatDoesNotFit) {
  HugePageArena arena(1000);
  EXPECT_EQ(arena.allocate(1001), nullptr);
  EXPECT_EQ(arena.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(arena.allocate(SIZE_MAX - 62), nullptr);
  ASSERT_NE(arena.allocate(990), nullptr);
  EXPECT_EQ(arena.allocate(1), nullptr) << "the array before takes whole cache lines";
  EXPECT_EQ(HugePageArena(0).allocate(1), nullptr);
}
TEST(HugePageArena, ServesSeveralThreads) {
  constexpr size_t kThreads = 4, kArrays = 200;
  HugePageArena arena(kThreads * kArrays * kLine);
  std::vector<void*> arrays[kThreads];
  std::vector<std::thread> threads;
  for (auto& own : arrays) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < kArrays; ++i) own.push_back(arena.allocate(60));
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<void*> all;
  for (const auto& own : arrays) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), kThreads * kArrays);
  EXPECT_EQ(all.count(nullptr), 0u);
  EXPECT_EQ(arena.allocate(1), nullptr);
}

}  // namespace
}  // namespace executorch::cpu
