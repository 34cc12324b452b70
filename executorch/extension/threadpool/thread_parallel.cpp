// parallel_for on the process's pool, for every program that links this library.

#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/extension/threadpool/threadpool_guard.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <algorithm>

extern "C" int et_threadpool_registered;

namespace executorch::extension {
namespace {

bool parallel_for_on_pool(int64_t begin, int64_t end, int64_t grain_size,
                          runtime::FunctionRef<void(int64_t, int64_t)> f) {
  const int64_t range = end - begin;
  const int64_t most = std::max<int64_t>(range / grain_size, 1);
  if (most == 1 || threadpool::NoThreadPoolGuard::is_enabled()) {
    f(begin, end);
    return true;
  }
  auto* const pool = threadpool::get_threadpool();
  const int64_t n = std::min(most, static_cast<int64_t>(pool->get_thread_count()));
  const int64_t base = range / n;
  const int64_t longer = range % n;  // the first so many parts get one element more
  auto part = [&](size_t index) {
    const auto i = static_cast<int64_t>(index);
    const int64_t first = begin + i * base + std::min(i, longer);
    const int64_t outer = get_thread_num();
    set_thread_num(i);
    f(first, first + base + (i < longer ? 1 : 0));
    set_thread_num(outer);
  };
  pool->run(part, static_cast<size_t>(n));
  return true;
}

int64_t pool_thread_count() {
  return static_cast<int64_t>(threadpool::get_threadpool()->get_thread_count());
}

}  // namespace
}  // namespace executorch::extension

int et_threadpool_registered =
    (executorch::extension::internal::set_parallel_for(executorch::extension::parallel_for_on_pool,
                                                       executorch::extension::pool_thread_count),
     1);
