#pragma once

#include <cstdint>

#include <executorch/runtime/core/function_ref.h>

namespace executorch::extension {

/// Calls f(a, b) on ranges that together are [begin, end), each of at least `grain_size` elements
/// where there are as many, on the pool's threads if there is a pool and on this one otherwise.
/// Returns when all are done; false, logged, unless 0 <= begin <= end and grain_size > 0.
bool parallel_for(const int64_t begin, const int64_t end, const int64_t grain_size,
                  runtime::FunctionRef<void(int64_t, int64_t)> f);

/// The number of threads that parallel_for() runs on; 1 without a pool.
int64_t get_thread_count();

/// Which of the pool's threads this is; 0 outside parallel_for().
int64_t get_thread_num();
void set_thread_num(int64_t thread_num);

namespace internal {

/// A grain size for cheap operations on elements: fewer are not worth a second thread.
constexpr int64_t GRAIN_SIZE = 32768;

/// parallel_for() on this thread alone, in one range.
bool parallel_for_no_threadpool(const int64_t begin, const int64_t end, const int64_t grain_size,
                                runtime::FunctionRef<void(int64_t, int64_t)> f);

/// What parallel_for() calls once it has checked its arguments; begin < end and grain_size > 0. A
/// thread pool sets it once at start-up; null restores the loop on the calling thread.
using ParallelForFunction = bool (*)(int64_t begin, int64_t end, int64_t grain_size,
                                     runtime::FunctionRef<void(int64_t, int64_t)> f);
/// The number of threads of that pool.
using ThreadCountFunction = int64_t (*)();
void set_parallel_for(ParallelForFunction function, ThreadCountFunction count = nullptr);

}  // namespace internal
}  // namespace executorch::extension

namespace torch::executor {
using ::executorch::extension::get_thread_count;
using ::executorch::extension::get_thread_num;
using ::executorch::extension::parallel_for;
using ::executorch::extension::set_thread_num;
}  // namespace torch::executor
