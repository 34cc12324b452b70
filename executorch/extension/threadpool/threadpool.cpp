#include <executorch/extension/threadpool/cpuinfo_utils.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/extension/threadpool/threadpool_guard.h>

#include <algorithm>

#if defined(ET_HAS_PTHREADPOOL)
#include <pthreadpool.h>
#endif

namespace executorch {
namespace extension {
namespace threadpool {

namespace {

thread_local bool no_threadpool = false;

#if defined(ET_HAS_PTHREADPOOL)

pthreadpool_t create(size_t thread_count) {
  return pthreadpool_create(thread_count);
}
void destroy(pthreadpool_t pool) {
  pthreadpool_destroy(pool);
}
size_t count_threads(pthreadpool_t pool) {
  return pthreadpool_get_threads_count(pool);
}

void parallelize(pthreadpool_t pool, runtime::FunctionRef<void(size_t)> fn, size_t range) {
  // A worker that waited for the pool it works in would wait forever.
  auto serial_inside = [fn](size_t i) {
    const NoThreadPoolGuard guard;
    fn(i);
  };
  pthreadpool_parallelize_1d(
      pool, [](void* context, size_t i) { (*static_cast<decltype(serial_inside)*>(context))(i); },
      &serial_inside, range, /*flags=*/0);
}

#else

pthreadpool_t create(size_t) {
  return nullptr;
}
void destroy(pthreadpool_t) {}
size_t count_threads(pthreadpool_t) {
  return 1;
}
void parallelize(pthreadpool_t, runtime::FunctionRef<void(size_t)>, size_t) {}

#endif

}  // namespace

bool NoThreadPoolGuard::is_enabled() {
  return no_threadpool;
}
void NoThreadPoolGuard::set_enabled(bool enabled) {
  no_threadpool = enabled;
}

void ThreadPool::Destroy::operator()(pthreadpool* pool) const {
  destroy(pool);
}

ThreadPool::ThreadPool(size_t thread_count)
    : pool_(create(thread_count != 0 ? thread_count : cpuinfo::get_num_performant_cores())) {}

size_t ThreadPool::get_thread_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pool_ == nullptr ? 1 : count_threads(pool_.get());
}

bool ThreadPool::_unsafe_reset_threadpool(uint32_t num_threads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (num_threads == 0) {
    return false;
  }
  if (pool_ == nullptr || count_threads(pool_.get()) != num_threads) {
    pool_.reset();
    pool_.reset(create(num_threads));
  }
  return pool_ != nullptr;
}

void ThreadPool::_unsafe_destroy_threadpool() {
  const std::lock_guard<std::mutex> lock(mutex_);
  pool_.reset();
}

void ThreadPool::run(runtime::FunctionRef<void(size_t)> fn, size_t range) {
  if (!NoThreadPoolGuard::is_enabled() && range > 1) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pool_ != nullptr) {
      return parallelize(pool_.get(), fn, range);
    }
  }
  for (size_t i = 0; i < range; ++i) {
    fn(i);
  }
}

ThreadPool* get_threadpool() {
  static ThreadPool pool;
  return &pool;
}

pthreadpool_t get_pthreadpool() {
  return NoThreadPoolGuard::is_enabled() ? nullptr : get_threadpool()->pool_.get();
}

}  // namespace threadpool
}  // namespace extension
}  // namespace executorch
