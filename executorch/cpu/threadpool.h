/// The threads that kernels share.
///
///   parallel_for(rows, grain, [&](int64_t begin, int64_t end) { ... });
///
/// Every index must be computed in the same way whichever range it comes in, so that results do not
/// depend on the number of threads. A loop inside a loop, and one that finds the pool at work for
/// another program, runs on the calling thread: programs never wait for one another. A caller waits
/// only for ranges that another thread is in: it takes all that nobody else has begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct pthreadpool;

namespace executorch::cpu {

class ThreadPool {
 public:
  /// `thread_count` threads, the caller of a loop included; 0 means one per performant core.
  explicit ThreadPool(size_t thread_count = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t thread_count() const;
  /// Changes the number of threads (> 0); waits for a loop in progress.
  void resize(size_t thread_count);

  /// `thread` < thread_count() is a number that no other thread has in this loop.
  using Body = void (*)(void* context, int64_t begin, int64_t end, size_t thread);
  /// Calls body for disjoint ranges that cover [0, n); all but the last have a multiple of `grain`
  /// indices. Returns when all are done. With more than `max_threads` threads by now, the caller
  /// computes everything, as thread 0.
  void run(int64_t n, int64_t grain, Body body, void* context, size_t max_threads = SIZE_MAX);

  /// Threads apart, for libraries that take such a handle, made on first use; null for one thread
  /// and without the pthreadpool library.
  ::pthreadpool* handle();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The pool of the process, made on first use.
ThreadPool& default_pool();

/// While it lives, loops of the calling thread run on `pool`; nullptr: on the calling thread alone.
class UsePool {
 public:
  explicit UsePool(ThreadPool* pool);
  ~UsePool();
  UsePool(const UsePool&) = delete;
  UsePool& operator=(const UsePool&) = delete;

 private:
  ThreadPool* outer_;
  bool outer_set_;
};

namespace internal {
void run_parallel(int64_t n, int64_t grain, ThreadPool::Body body, void* context,
                  size_t max_threads = SIZE_MAX);
/// Whether loops of the calling thread run on it alone, as they do inside a loop.
bool loops_are_serial();
void set_loops_serial(bool value);
}  // namespace internal

/// Threads that a loop of the calling thread can have. For dividing work only: results do not
/// depend on it.
size_t loop_threads();

/// Calls f(begin, end) as ThreadPool::run does, on the calling thread's pool. n <= grain: one call.
template <class F>
void parallel_for(int64_t n, int64_t grain, const F& f) {
  if (n <= grain) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  internal::run_parallel(
      n, grain,
      [](void* context, int64_t begin, int64_t end, size_t) {
        (*static_cast<const F*>(context))(begin, end);
      },
      const_cast<F*>(&f));
}

}  // namespace executorch::cpu
