/// The threads that kernels share.
///
///   parallel_for(rows, grain, [&](int64_t begin, int64_t end) { ... });
///
/// The result for an index must not depend on the range that contains it, so that results do not
/// depend on the number of threads. A loop inside a loop runs on the calling thread; so does a loop
/// that finds the pool busy with another program, because programs never wait for one another. A
/// caller computes all ranges that no other thread has begun, and waits only for the ones in
/// progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct pthreadpool;

namespace executorch::cpu {

class ThreadPool {
 public:
  /// A pool of `thread_count` threads, the caller of a loop included; 0 means one thread for each
  /// fast core (Machine::cores).
  explicit ThreadPool(size_t thread_count = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t thread_count() const;
  /// Changes the number of threads to `thread_count` > 0. Waits until a loop in progress has ended.
  void resize(size_t thread_count);

  /// Computes indices [begin, end). `thread` < thread_count() is unique among the threads of the
  /// loop.
  using Body = void (*)(void* context, int64_t begin, int64_t end, size_t thread);
  /// Calls body for disjoint ranges that cover [0, n). The length of each range but the last is a
  /// multiple of `grain`. Returns when all calls have ended. If the pool has more than
  /// `max_threads` threads by now, the caller computes all of [0, n) as thread 0.
  void run(int64_t n, int64_t grain, Body body, void* context, size_t max_threads = SIZE_MAX);

  /// A pthreadpool with threads of its own, for libraries that take such a handle. It is created on
  /// first use. Null if the pool has one thread, or the build lacks the pthreadpool library.
  ::pthreadpool* handle();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The pool of the process, created on first use.
ThreadPool& default_pool();

/// While a UsePool lives, loops of the calling thread run on `pool`, or on the calling thread alone
/// if `pool` is null.
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
/// Whether loops of the calling thread run on that thread alone, as they do inside a loop.
bool loops_are_serial();
void set_loops_serial(bool value);
}  // namespace internal

/// The number of threads that a loop of the calling thread can run on. It is meant for dividing
/// work; results must not depend on it.
size_t loop_threads();

/// Calls f(begin, end) for ranges that cover [0, n), as ThreadPool::run() does, on the pool of the
/// calling thread. If n <= grain there is a single call, on the calling thread.
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
