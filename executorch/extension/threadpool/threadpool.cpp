#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/extension/threadpool/threadpool_guard.h>

namespace executorch::extension::threadpool {

bool NoThreadPoolGuard::is_enabled() {
  return cpu::internal::loops_are_serial();
}
void NoThreadPoolGuard::set_enabled(bool enabled) {
  cpu::internal::set_loops_serial(enabled);
}

ThreadPool::ThreadPool(size_t thread_count)
    : owned_(std::make_unique<cpu::ThreadPool>(thread_count)), pool_(owned_.get()) {}

size_t ThreadPool::get_thread_count() const {
  return pool_->thread_count();
}

bool ThreadPool::_unsafe_reset_threadpool(uint32_t num_threads) {
  if (num_threads == 0) return false;
  pool_->resize(num_threads);
  return pool_->thread_count() == num_threads;
}

void ThreadPool::_unsafe_destroy_threadpool() {
  pool_->resize(1);
}

void ThreadPool::run(runtime::FunctionRef<void(size_t)> fn, size_t range) {
  pool_->run(
      static_cast<int64_t>(range), 1,
      [](void* context, int64_t begin, int64_t end, size_t) {
        const auto& f = *static_cast<const runtime::FunctionRef<void(size_t)>*>(context);
        for (int64_t i = begin; i < end; ++i) f(static_cast<size_t>(i));
      },
      &fn);
}

ThreadPool* get_threadpool() {
  static ThreadPool pool(cpu::default_pool());
  return &pool;
}

pthreadpool_t get_pthreadpool() {
  return NoThreadPoolGuard::is_enabled() ? nullptr : cpu::default_pool().handle();
}

}  // namespace executorch::extension::threadpool
