#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <gtest/gtest.h>

namespace executorch::extension {
namespace {

TEST(ParallelFor, SerialLoopCoversTheRangeOnce) {
  int64_t sum = 0;
  EXPECT_TRUE(parallel_for(2, 10, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  }));
  EXPECT_EQ(sum, 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9);
}

TEST(ParallelFor, BadRangesAreRefused) {
  const auto never = [](int64_t, int64_t) { FAIL(); };
  EXPECT_TRUE(parallel_for(4, 4, 1, never));
  EXPECT_FALSE(parallel_for(4, 3, 1, never));
  EXPECT_FALSE(parallel_for(-1, 3, 1, never));
  EXPECT_FALSE(parallel_for(0, 3, 0, never));
}

bool halves(int64_t begin, int64_t end, int64_t, runtime::FunctionRef<void(int64_t, int64_t)> f) {
  f(begin, end / 2);
  f(end / 2, end);
  return true;
}

TEST(ParallelFor, PoolTakesOver) {
  EXPECT_EQ(get_thread_count(), 1);
  internal::set_parallel_for(halves, [] { return int64_t{2}; });
  EXPECT_EQ(get_thread_count(), 2);
  int calls = 0;
  EXPECT_TRUE(parallel_for(0, 10, 1, [&](int64_t, int64_t) { ++calls; }));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(internal::parallel_for_no_threadpool(0, 10, 1, [&](int64_t, int64_t) { ++calls; }));
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(internal::parallel_for_no_threadpool(1, 0, 1, [&](int64_t, int64_t) { ++calls; }));
  internal::set_parallel_for(nullptr);
  EXPECT_EQ(calls, 3);
}

TEST(ParallelFor, ThreadNumberIsPerThread) {
  EXPECT_EQ(get_thread_num(), 0);
  set_thread_num(3);
  EXPECT_EQ(get_thread_num(), 3);
  set_thread_num(0);
}

}  // namespace
}  // namespace executorch::extension
