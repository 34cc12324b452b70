#include <executorch/cpu/loop_reads.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/team.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#if defined(ET_HAS_PTHREADPOOL)
#include <pthreadpool.h>
#else
using pthreadpool_t = pthreadpool*;
#endif

namespace executorch::cpu {
namespace {

// More than machines have cores. A larger number is taken for a mistake and reduced to this.
constexpr size_t kMostThreads = 1024;
// Ranges per thread. Several ranges let other threads take over the rest of a late thread's ranges.
constexpr int64_t kRangesPerThread = 16;

thread_local bool serial = false;
thread_local ThreadPool* pool_in_use = nullptr;
thread_local bool pool_in_use_set = false;

thread_local Reads reads_of_next_loop;

struct Loop {
  ThreadPool::Body body;
  void* context;
  int64_t n;
  int64_t range;  // indices of each but the last
};

}  // namespace

namespace internal {

bool loops_are_serial() {
  return serial;
}

void set_loops_serial(bool value) {
  serial = value;
}

}  // namespace internal

struct ThreadPool::Impl {
  std::mutex mutex;            // held while a loop runs
  std::unique_ptr<Team> team;  // null stands for one thread
  ReadHistory history;
  std::atomic<size_t> thread_count{1};
  pthreadpool_t handle = nullptr;

  ~Impl() { reset(1); }
  void reset(size_t count) {
#if defined(ET_HAS_PTHREADPOOL)
    if (handle != nullptr) pthreadpool_destroy(handle);
    handle = nullptr;
#endif
    team.reset();
    count = std::min(count, kMostThreads);
    if (count > 1) team.reset(new (std::nothrow) Team(count - 1));
    if (team != nullptr && team->helpers() == 0) team.reset();
    thread_count = team == nullptr ? 1 : team->helpers() + 1;
  }
};

ThreadPool::ThreadPool(size_t thread_count) : impl_(new (std::nothrow) Impl) {
  if (impl_ == nullptr) return;
  impl_->reset(thread_count != 0 ? thread_count : machine().cores);
}

size_t ThreadPool::thread_count() const {
  return impl_ == nullptr ? 1 : impl_->thread_count.load();
}

void ThreadPool::resize(size_t thread_count) {
  if (impl_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->thread_count != thread_count) impl_->reset(thread_count);
}

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context, size_t max_threads) {
  const Reads reads = std::exchange(reads_of_next_loop, {});
  if (n <= 0) return;
  if (n <= grain || serial || impl_ == nullptr) return body(context, 0, n, 0);
  const std::unique_lock<std::mutex> lock(impl_->mutex, std::try_to_lock);
  if (!lock.owns_lock() || impl_->team == nullptr || impl_->thread_count > max_threads) {
    return body(context, 0, n, 0);
  }
  grain = std::max<int64_t>(grain, 1);
  const int64_t most = kRangesPerThread * static_cast<int64_t>(impl_->thread_count.load());
  Loop loop = {body, context, n, ((n + most - 1) / most + grain - 1) / grain * grain};
  const int64_t ranges = (n + loop.range - 1) / loop.range;
  impl_->team->run(
      ranges,
      [](void* at, int64_t i, size_t thread) {
        const Loop& l = *static_cast<const Loop*>(at);
        const bool outer = serial;
        serial = true;
        l.body(l.context, i * l.range, std::min(l.n, (i + 1) * l.range), thread);
        serial = outer;
      },
      &loop, impl_->history.record_and_predict({reads, ranges, loop.range}));
}

::pthreadpool* ThreadPool::handle() {
  if (impl_ == nullptr) return nullptr;
#if defined(ET_HAS_PTHREADPOOL)
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->handle == nullptr && impl_->team != nullptr) {
    impl_->handle = pthreadpool_create(impl_->thread_count);
  }
#endif
  return impl_->handle;
}

void will_read(const Reads& reads) {
  reads_of_next_loop = reads;
}

ThreadPool::~ThreadPool() = default;

ThreadPool& default_pool() {
  static ThreadPool pool;
  return pool;
}

UsePool::UsePool(ThreadPool* pool) : outer_(pool_in_use), outer_set_(pool_in_use_set) {
  pool_in_use = pool;
  pool_in_use_set = true;
}

UsePool::~UsePool() {
  pool_in_use = outer_;
  pool_in_use_set = outer_set_;
}

namespace {
// The pool for loops of the calling thread; null if they run on the calling thread alone.
ThreadPool* current_pool() {
  if (serial) return nullptr;
  return pool_in_use_set ? pool_in_use : &default_pool();
}
}  // namespace

size_t loop_threads() {
  ThreadPool* const pool = current_pool();
  return pool == nullptr ? 1 : pool->thread_count();
}

void internal::run_parallel(int64_t n, int64_t grain, ThreadPool::Body body, void* context,
                            size_t max_threads) {
  ThreadPool* const pool = current_pool();
  if (pool == nullptr) {
    reads_of_next_loop = {};
    return body(context, 0, n, 0);
  }
  pool->run(n, grain, body, context, max_threads);
}

}  // namespace executorch::cpu
