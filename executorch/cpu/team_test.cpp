#include <executorch/cpu/team.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace executorch::cpu {
namespace {

template <class F>
void run(Team& team, int64_t n, const F& f) {
  team.run(
      n, [](void* at, int64_t i, size_t) { (*static_cast<const F*>(at))(i); }, const_cast<F*>(&f));
}

TEST(Team, RunsEveryRangeOnceInLoopAfterLoop) {
  for (const size_t helpers : {0, 1, 2, 7}) {
    Team team(helpers);
    for (int loop = 0; loop < 300; ++loop) {
      const int64_t n = loop % 41;
      std::vector<std::atomic<int>> calls(static_cast<size_t>(n));
      run(team, n, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      for (const auto& count : calls) ASSERT_EQ(count, 1) << helpers << " " << loop;
    }
  }
}

TEST(Team, SharesALoopWithItsHelpers) {
  Team team(1);
  ASSERT_EQ(team.helpers(), 1u);
  // Whichever thread has the first range cannot end before another has the second.
  std::atomic<int> inside{0};
  run(team, 2, [&](int64_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 2);
}

TEST(Team, WaitsForRangesThatHelpersAreIn) {
  Team team(1);
  std::atomic<int> inside{0};
  std::atomic<bool> done{false};
  const auto caller = std::this_thread::get_id();
  run(team, 2, [&](int64_t) {
    ++inside;
    while (inside < 2) std::this_thread::yield();
    if (std::this_thread::get_id() == caller) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until the caller sleeps as well
    done = true;
  });
  EXPECT_TRUE(done);
}

int64_t times_asked(const LoopReads& next, int64_t range, int64_t most, int busy_after) {
  int64_t asked = 0;
  next.fetch(range, most, [&] { return ++asked > busy_after; });
  return asked;
}

TEST(LoopReads, EndsWithTheLoopOrWhenTheCacheIsFullOrWorkComes) {
  const char* const nowhere = nullptr;  // asking for lines touches nothing
  // 4 ranges of 2 indices, each 3 pieces of 128 bytes: 6 lines an index; busy() every 8 lines.
  const LoopReads next = {{nowhere, 4096, 3, 128, 256}, 4, 2};
  EXPECT_EQ(times_asked(next, 0, 1 << 20, 100), 6);  // 48 lines
  EXPECT_EQ(times_asked(next, 3, 1 << 20, 100), 2);
  EXPECT_EQ(times_asked(next, 4, 1 << 20, 100), 0);
  EXPECT_EQ(times_asked(next, 0, 16 * 64, 100), 2);
  EXPECT_EQ(times_asked(next, 0, 1 << 20, 1), 2);
  EXPECT_EQ(times_asked({}, 0, 1 << 20, 100), 0);
}

TEST(LoopReads, LoopsThatAnnounceWhatTheyReadRunAsOthersDo) {
  ThreadPool pool(3);
  const UsePool use(&pool);
  std::vector<char> a(1 << 16), b(1 << 16);
  for (int call = 0; call < 50; ++call) {
    for (const std::vector<char>* matrix : {&a, &b}) {
      will_read({matrix->data(), 1 << 10, 1, 1 << 10, 0});
      std::atomic<int> sum{0};
      parallel_for(64, 1,
                   [&](int64_t begin, int64_t end) { sum += static_cast<int>(end - begin); });
      ASSERT_EQ(sum, 64);
      parallel_for(8, 1, [&](int64_t begin, int64_t end) { sum += static_cast<int>(end - begin); });
      ASSERT_EQ(sum, 72);
    }
  }
}

#if defined(__linux__)
// A forked process has the caller's thread alone, as if all helpers had lost their cores.
TEST(Team, LeavesNothingToHelpersThatDoNotCome) {
  ThreadPool pool(3);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const UsePool use(&pool);
    ::alarm(10);
    std::atomic<int> sum{0};
    for (int loop = 0; loop < 10; ++loop) {
      parallel_for(100, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++sum;
      });
    }
    pool.resize(1);  // does not wait for them either
    ::_exit(sum == 1000 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace executorch::cpu
