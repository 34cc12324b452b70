/// Threads that help their caller with one loop after the other.
///
/// A loop is a number of ranges. Every thread has a share of them, begins with its own and then
/// takes from the far ends of the others', so that a thread meets the same memory in loop after
/// loop. The caller waits for nobody who has not begun: helpers that sleep, or that have lost their
/// core to another program, find their share done when they come.
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
  /// `helpers` threads beside the caller; fewer where the system refuses them, none where it
  /// refuses memory. Without helpers run() must not be called.
  explicit Team(size_t helpers);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  size_t helpers() const { return n_helpers_; }

  using Range = void (*)(void* context, int64_t range, size_t thread);
  /// range(context, i, thread) once for every i < n, on the caller, which is thread 0, and those
  /// helpers that come in time; returns when all are done. One caller at a time. `next` is what the
  /// next loop may read.
  void run(int64_t n, Range range, void* context, const LoopReads& next = {});

 private:
  /// Ranges [front, back) of which `left` are not taken, by their owner from the front and by
  /// others from the back.
  struct alignas(64) Share {
    std::atomic<int64_t> left{0};
    std::atomic<int64_t> back{0};
    int64_t front = 0;
  };

  void help(size_t self);
  bool wait_for_loop(uint32_t& seen);
  bool join();
  void run_ranges(size_t self);
  void wait_for_helpers();

  // Written by the caller while no helper is inside.
  Range range_ = nullptr;
  void* context_ = nullptr;
  LoopReads next_;
  std::unique_ptr<Share[]> shares_;  // the caller's first

  /// The loop's number, whether it may be joined, and how many helpers are inside.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> left_{0};  // the loop that its last helper left
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
