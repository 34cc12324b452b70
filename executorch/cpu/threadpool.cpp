#include <executorch/cpu/cores.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#if defined(ET_HAS_PTHREADPOOL)
#include <pthreadpool.h>
#endif

namespace executorch::cpu {
namespace {

// Ranges per thread: a thread that is late leaves the rest of its share to the others.
constexpr int64_t kRangesPerThread = 16;

thread_local bool serial = false;
thread_local ThreadPool* pool_in_use = nullptr;
thread_local bool pool_in_use_set = false;

struct Loop {
  ThreadPool::Body body;
  void* context;
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

#if defined(ET_HAS_PTHREADPOOL)

struct ThreadPool::Impl {
  std::mutex mutex;
  pthreadpool_t pool = nullptr;  // null stands for one thread
  std::atomic<size_t> thread_count{1};

  ~Impl() { reset(1); }
  void reset(size_t count) {
    if (pool != nullptr) pthreadpool_destroy(pool);
    pool = count > 1 ? pthreadpool_create(count) : nullptr;
    thread_count = pool == nullptr ? 1 : pthreadpool_get_threads_count(pool);
  }
};

ThreadPool::ThreadPool(size_t thread_count) : impl_(std::make_unique<Impl>()) {
  impl_->reset(thread_count != 0 ? thread_count : performant_cores());
}

size_t ThreadPool::thread_count() const {
  return impl_->thread_count;
}

void ThreadPool::resize(size_t thread_count) {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->thread_count != thread_count) impl_->reset(thread_count);
}

void ThreadPool::run(int64_t n, int64_t grain, Body body, void* context) {
  if (n <= 0) return;
  if (n <= grain || serial) return body(context, 0, n);
  const std::unique_lock<std::mutex> lock(impl_->mutex, std::try_to_lock);
  if (!lock.owns_lock() || impl_->pool == nullptr) return body(context, 0, n);
  grain = std::max<int64_t>(grain, 1);
  const int64_t ranges = kRangesPerThread * static_cast<int64_t>(impl_->thread_count.load());
  const int64_t tile = ((n + ranges - 1) / ranges + grain - 1) / grain * grain;
  Loop loop = {body, context};
  pthreadpool_parallelize_1d_tile_1d(
      impl_->pool,
      [](void* at, size_t begin, size_t size) {
        const auto& l = *static_cast<const Loop*>(at);
        const bool outer = serial;
        serial = true;
        l.body(l.context, static_cast<int64_t>(begin), static_cast<int64_t>(begin + size));
        serial = outer;
      },
      &loop, static_cast<size_t>(n), static_cast<size_t>(tile), /*flags=*/0);
}

::pthreadpool* ThreadPool::handle() {
  return impl_->pool;
}

#else

struct ThreadPool::Impl {};

ThreadPool::ThreadPool(size_t) {}
size_t ThreadPool::thread_count() const {
  return 1;
}
void ThreadPool::resize(size_t) {}
void ThreadPool::run(int64_t n, int64_t, Body body, void* context) {
  if (n > 0) body(context, 0, n);
}
::pthreadpool* ThreadPool::handle() {
  return nullptr;
}

#endif

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
// The pool for a loop of the calling thread; null: none.
ThreadPool* current_pool() {
  if (serial) return nullptr;
  return pool_in_use_set ? pool_in_use : &default_pool();
}
}  // namespace

size_t loop_threads() {
  ThreadPool* const pool = current_pool();
  return pool == nullptr ? 1 : pool->thread_count();
}

void internal::run_parallel(int64_t n, int64_t grain, ThreadPool::Body body, void* context) {
  ThreadPool* const pool = current_pool();
  if (pool == nullptr) return body(context, 0, n);
  pool->run(n, grain, body, context);
}

}  // namespace executorch::cpu
