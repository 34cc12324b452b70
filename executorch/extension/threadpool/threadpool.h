#pragma once

#include <executorch/cpu/threadpool.h>
#include <executorch/runtime/core/function_ref.h>

#include <cstddef>
#include <cstdint>
#include <memory>

struct pthreadpool;
typedef struct pthreadpool* pthreadpool_t;

namespace executorch::extension::threadpool {

/// Threads that share loops.
class ThreadPool final {
 public:
  /// 0 means one thread per performant core.
  explicit ThreadPool(size_t thread_count = 0);
  ~ThreadPool() = default;

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The thread that calls run() included.
  size_t get_thread_count() const;

  /// Changes the number of threads. No work may be running, and what get_pthreadpool() returned
  /// before is gone.
  [[deprecated(
      "This API is experimental and may change without notice. Consider using "
      "UseNThreadsThreadPoolGuard")]] bool
  _unsafe_reset_threadpool(uint32_t num_threads);

  /// Ends the threads; run() then works on the calling thread.
  [[deprecated("This API is experimental and may change without notice.")]] void
  _unsafe_destroy_threadpool();

  /// Calls fn(0) ... fn(range - 1), each once, on any thread and in any order, and returns when all
  /// are done. Inside fn, and while the pool works for another caller, run() is serial.
  void run(runtime::FunctionRef<void(size_t)> fn, size_t range);

 private:
  friend ThreadPool* get_threadpool();
  explicit ThreadPool(cpu::ThreadPool& shared) : pool_(&shared) {}

  std::unique_ptr<cpu::ThreadPool> owned_;  // null for the pool of the process
  cpu::ThreadPool* pool_;
};

/// The pool of the process, which kernels use as well, made on first use. Never null.
ThreadPool* get_threadpool();

/// The handle of that pool for libraries that take one; null while NoThreadPoolGuard is in force
/// and where the pool has one thread, which means: work on the calling thread.
pthreadpool_t get_pthreadpool();

}  // namespace executorch::extension::threadpool

// torch::executorch::threadpool, as upstream spells it. An alias, and no namespace of its own, in
// which torch::executor would look for executorch::runtime.
namespace executorch {
namespace threadpool = extension::threadpool;
}
namespace torch {
namespace executorch = ::executorch;
}
