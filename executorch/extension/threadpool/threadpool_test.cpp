#include <executorch/extension/threadpool/cpuinfo_utils.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/extension/threadpool/threadpool_guard.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension {
namespace {

using threadpool::get_threadpool;
using threadpool::NoThreadPoolGuard;
using threadpool::ThreadPool;

std::vector<int> calls_per_index(ThreadPool& pool, size_t range) {
  std::vector<std::atomic<int>> calls(range);
  auto count = [&](size_t i) { ++calls[i]; };
  pool.run(count, range);
  return {calls.begin(), calls.end()};
}

TEST(ThreadPool, CallsEveryIndexOnce) {
  ThreadPool pool(3);
  EXPECT_EQ(calls_per_index(pool, 1000), std::vector<int>(1000, 1));
  EXPECT_EQ(calls_per_index(pool, 1), std::vector<int>(1, 1));
  EXPECT_EQ(calls_per_index(pool, 0), std::vector<int>());
}

TEST(ThreadPool, DefaultHasOneThreadPerPerformantCore) {
  EXPECT_GE(cpuinfo::get_num_performant_cores(), 1u);
  EXPECT_GE(ThreadPool().get_thread_count(), 1u);
  EXPECT_EQ(get_threadpool(), get_threadpool());
}

TEST(ThreadPool, ResetChangesTheCount) {
  ThreadPool pool(2);
  EXPECT_FALSE(pool._unsafe_reset_threadpool(0));
  const size_t before = pool.get_thread_count();
  if (pool._unsafe_reset_threadpool(4)) {
    EXPECT_EQ(pool.get_thread_count(), before * 2);
  }
  EXPECT_EQ(calls_per_index(pool, 100), std::vector<int>(100, 1));
  pool._unsafe_destroy_threadpool();
  EXPECT_EQ(pool.get_thread_count(), 1u);
  EXPECT_EQ(calls_per_index(pool, 100), std::vector<int>(100, 1));
}

TEST(ThreadPool, NestedRunsAreSerial) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  auto inner = [&](size_t) { ++calls; };
  auto outer = [&](size_t) {
    EXPECT_TRUE(NoThreadPoolGuard::is_enabled());
    pool.run(inner, 5);
  };
  pool.run(outer, 8);
  EXPECT_EQ(calls, 40);
  EXPECT_FALSE(NoThreadPoolGuard::is_enabled());
}

TEST(NoThreadPoolGuard, KeepsWorkOnTheCallingThread) {
  const NoThreadPoolGuard guard;
  const auto self = std::this_thread::get_id();
  auto check = [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), self); };
  ThreadPool(3).run(check, 20);
  EXPECT_EQ(threadpool::get_pthreadpool(), nullptr);
}

TEST(ParallelFor, CoversTheRangeInPartsOfAtLeastTheGrain) {
  get_threadpool()->_unsafe_reset_threadpool(3);
  for (const int64_t size : {1, 2, 7, 10, 100}) {
    for (const int64_t grain : {1, 3, 1000}) {
      std::mutex mutex;
      std::vector<int> seen(static_cast<size_t>(size), 0);
      ASSERT_TRUE(parallel_for(5, 5 + size, grain, [&](int64_t begin, int64_t end) {
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_GE(end - begin, std::min(grain, size));
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i - 5)];
      }));
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(size), 1)) << size << " " << grain;
    }
  }
  EXPECT_EQ(get_thread_num(), 0);
}

}  // namespace
}  // namespace executorch::extension
