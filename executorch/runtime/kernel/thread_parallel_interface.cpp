#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <executorch/runtime/core/error.h>

namespace executorch::extension {
namespace {

internal::ParallelForFunction pool_parallel_for = nullptr;
internal::ThreadCountFunction pool_thread_count = nullptr;
thread_local int64_t this_thread_num = 0;

bool run(internal::ParallelForFunction pool, int64_t begin, int64_t end, int64_t grain_size,
         runtime::FunctionRef<void(int64_t, int64_t)> f) {
  if (begin < 0 || end < begin || grain_size <= 0) {
    ET_LOG(Error,
           "parallel_for: range [%lld, %lld) in steps of at least %lld; expected 0 <= begin <= end "
           "and steps of at least 1",
           static_cast<long long>(begin), static_cast<long long>(end),
           static_cast<long long>(grain_size));
    return false;
  }
  if (begin == end) return true;
  if (pool != nullptr) return pool(begin, end, grain_size, f);
  f(begin, end);
  return true;
}

}  // namespace

bool parallel_for(const int64_t begin, const int64_t end, const int64_t grain_size,
                  runtime::FunctionRef<void(int64_t, int64_t)> f) {
  return run(pool_parallel_for, begin, end, grain_size, f);
}

bool internal::parallel_for_no_threadpool(const int64_t begin, const int64_t end,
                                          const int64_t grain_size,
                                          runtime::FunctionRef<void(int64_t, int64_t)> f) {
  return run(nullptr, begin, end, grain_size, f);
}

int64_t get_thread_count() {
  return pool_thread_count != nullptr ? pool_thread_count() : 1;
}

int64_t get_thread_num() {
  return this_thread_num;
}

void set_thread_num(int64_t thread_num) {
  this_thread_num = thread_num;
}

void internal::set_parallel_for(ParallelForFunction function, ThreadCountFunction count) {
  pool_parallel_for = function;
  pool_thread_count = count;
}

}  // namespace executorch::extension
