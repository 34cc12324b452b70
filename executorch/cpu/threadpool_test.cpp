#include <executorch/cpu/machine.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace executorch::cpu {
namespace {

// How often parallel_for(n, grain) meets each index; checks the ranges' alignment on the way.
std::vector<int> visits(int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> count(static_cast<size_t>(n));
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    EXPECT_LT(begin, end);
    EXPECT_EQ(begin % grain, 0);
    EXPECT_TRUE(end == n || (end - begin) % grain == 0);
    for (int64_t i = begin; i < end; ++i) ++count[static_cast<size_t>(i)];
  });
  return {count.begin(), count.end()};
}

TEST(ParallelFor, MeetsEveryIndexOnceInRangesOfWholeGrains) {
  for (const size_t threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    for (const int64_t n : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {1, 3, 16, 2000}) {
        EXPECT_EQ(visits(n, grain), std::vector<int>(static_cast<size_t>(n), 1))
            << n << " " << grain;
      }
    }
  }
}

TEST(ParallelFor, RunsOnTheCallingThreadInsideALoop) {
  ThreadPool pool(3);
  const UsePool use(&pool);
  std::atomic<int> calls{0};
  parallel_for(6, 1, [&](int64_t begin, int64_t end) {
    const auto self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      pool.run(
          10, 1,
          [](void* context, int64_t b, int64_t e, size_t thread) {
            EXPECT_EQ(thread, 0u);
            EXPECT_EQ(*static_cast<const std::thread::id*>(context), std::this_thread::get_id());
            EXPECT_EQ(e - b, 10);
          },
          const_cast<std::thread::id*>(&self));
      ++calls;
    }
  });
  EXPECT_EQ(calls, 6);
}

TEST(ParallelFor, RunsOnTheCallingThreadWithoutAPool) {
  const UsePool use(nullptr);
  const auto self = std::this_thread::get_id();
  parallel_for(100, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(self, std::this_thread::get_id());
    EXPECT_EQ(end - begin, 100);
  });
}

TEST(ParallelFor, DoesNotWaitForAnotherCallersLoop) {
  ThreadPool pool(2);
  const UsePool use(&pool);
  std::atomic<bool> done{false};
  parallel_for(1, 0, [&](int64_t, int64_t) {  // holds the pool until the other thread is through
    std::thread other([&] {
      const UsePool also(&pool);
      EXPECT_EQ(visits(100, 1), std::vector<int>(100, 1));
      done = true;
    });
    other.join();
  });
  EXPECT_TRUE(done);
}

TEST(ParallelFor, ServesSeveralThreadsAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      const UsePool use(&pool);
      for (int i = 0; i < 50; ++i) EXPECT_EQ(visits(257, 4), std::vector<int>(257, 1));
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(UsePool, EndsWithItsScope) {
  ThreadPool three(3);
  const UsePool outer(&three);
  { const UsePool inner(nullptr); }
  std::atomic<int> ranges{0};
  parallel_for(300, 1, [&](int64_t, int64_t) { ++ranges; });
  EXPECT_GT(ranges, 1);
}

TEST(ThreadPool, CountsAndChangesItsThreads) {
  EXPECT_GE(machine().cores, 1u);
  EXPECT_EQ(ThreadPool(1).thread_count(), 1u);
  EXPECT_EQ(ThreadPool(1).handle(), nullptr);
  ThreadPool pool(2);
  EXPECT_EQ(pool.thread_count(), 2u);
  EXPECT_EQ(pool.handle(), pool.handle());
  pool.resize(3);
  EXPECT_EQ(pool.thread_count(), 3u);
  EXPECT_EQ(ThreadPool().thread_count(), machine().cores);
}

TEST(ThreadPool, AnyNumberIsAskedForAndFewAreMade) {
  ThreadPool pool(1);
  for (const size_t count : {size_t{UINT32_MAX}, SIZE_MAX, SIZE_MAX - 1, size_t{1} << 20}) {
    pool.resize(count);
    EXPECT_GE(pool.thread_count(), 1u);
    EXPECT_LE(pool.thread_count(), 1024u);
    std::atomic<int64_t> sum = 0;
    UsePool use(&pool);
    parallel_for(5000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 5000);
  }
}

}  // namespace
}  // namespace executorch::cpu
