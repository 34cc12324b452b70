/// A team of threads that helps its caller with one loop after the other.
///
/// A loop consists of ranges. Every thread has a queue of them: it computes its own ranges first,
/// from the front, and then steals ranges from the back of the other threads' queues. So a thread
/// reads mostly the same memory in loop after loop. The caller does not wait for a helper that has
/// not begun: a helper that sleeps, or has lost its core to another program, finds its queue
/// empty when it arrives.
#pragma once

#include <executorch/cpu/loop_reads.h>
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace executorch::cpu {

class Team {
 public:
  /// Starts `helpers` threads beside the caller; fewer if the system refuses threads, none if it
  /// refuses memory. run() must not be called if helpers() is 0.
  explicit Team(size_t helpers);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t helpers() const { return n_helpers_; }

  using Range = void (*)(void* context, int64_t range, size_t thread);
  /// Calls range(context, i, thread) once for every 0 <= i < n, on the calling thread (thread 0)
  /// and on the helpers that arrive in time. Returns when all calls have ended. Only one thread may
  /// call run() at a time. `next` is the memory that the next loop is expected to read; threads
  /// prefetch it when they have nothing left to compute.
  void run(int64_t n, Range range, void* context, const LoopReads& next = {});

 private:
  /// The ranges [front, back) of one thread, of which `left` are not claimed yet. The owner takes
  /// them from the front, thieves from the back. `left` alone decides who gets the last range.
  struct alignas(64) WorkQueue {
    std::atomic<int64_t> left{0};
    std::atomic<int64_t> back{0};
    int64_t front = 0;
  };

  void help(size_t self);
  bool wait_for_loop(uint32_t& seen);
  bool join();
  void run_ranges(size_t self);
  template <class F>
  void prefetch(const LoopReads& next, size_t thread, const F& done) const;
  bool helpers_are_gone() const { return (state_.load(std::memory_order_acquire) & kInside) == 0; }
  void wait_for_helpers();

  // Written by the caller while no helper is inside.
  Range range_ = nullptr;
  void* context_ = nullptr;
  LoopReads next_;
  std::unique_ptr<WorkQueue[]> queues_;  // by thread; the caller is thread 0

  /// The bit fields of state_: how many helpers are inside, whether helpers may still join the loop,
  /// and the lowest bit of the loop's number.
  static constexpr uint32_t kInside = 0x7FF, kOpen = 0x800, kLoop = 0x1000;
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> left_{0};  // changes when the last helper leaves a loop
  std::atomic<bool> ends_{false};
  struct Thread {
    Team* team;
    size_t self;
    ::pthread_t handle;
  };
  std::unique_ptr<Thread[]> threads_;
  size_t n_helpers_ = 0;
  const ::pid_t process_;
};

}  // namespace executorch::cpu
