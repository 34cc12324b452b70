#include <executorch/cpu/machine.h>
#include <executorch/cpu/team.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

namespace executorch::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// A helper first spins for the next loop, about as long as operators that run on one thread take.
// Then it spins but yields its core to other threads, and finally it parks. Waking a parked thread
// takes tens of microseconds.
constexpr std::chrono::microseconds kSpinTime{200}, kYieldTime{2000};
// How long the caller spins until the helpers have finished their last ranges. A helper that takes
// longer has probably lost its core and may need the caller's, so the caller then sleeps.
constexpr std::chrono::microseconds kCallerSpinTime{100};
constexpr int kSpins = 32;  // between readings of the clock

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until done() returns true or `time` is over. Returns whether done() returned true.
template <class F>
bool spin_until(const F& done, std::chrono::microseconds time, bool yields) {
  const auto end = Clock::now() + time;
  do {
    for (int i = 0; i < kSpins; ++i) {
      if (done()) return true;
      pause();
    }
    if (yields) std::this_thread::yield();
  } while (Clock::now() < end);
  return false;
}

}  // namespace

Team::Team(size_t helpers)
    : queues_(new (std::nothrow) WorkQueue[std::min<size_t>(helpers, kInside) + 1]),
      threads_(new (std::nothrow) Thread[std::min<size_t>(helpers, kInside)]),
      process_(::getpid()) {
  if (queues_ == nullptr || threads_ == nullptr) return;
  helpers = std::min<size_t>(helpers, kInside);
  for (; n_helpers_ < helpers; ++n_helpers_) {
    Thread& thread = threads_[n_helpers_];
    thread.team = this;
    thread.self = n_helpers_ + 1;
    const auto start = [](void* at) -> void* {
      const auto& t = *static_cast<const Thread*>(at);
      t.team->help(t.self);
      return nullptr;
    };
    if (::pthread_create(&thread.handle, nullptr, start, &thread) != 0) return;
  }
}

Team::~Team() {
  ends_ = true;
  state_ += kLoop;
  state_.notify_all();
  // In a forked child process the helper threads do not exist, so there is nothing to join.
  if (::getpid() != process_) return;
  for (size_t i = 0; i < n_helpers_; ++i) ::pthread_join(threads_[i].handle, nullptr);
}

void Team::run(int64_t n, Range range, void* context, const LoopReads& next) {
  const auto threads = static_cast<int64_t>(n_helpers_ + 1);
  range_ = range;
  context_ = context;
  next_ = next;
  for (int64_t t = 0; t < threads; ++t) {
    WorkQueue& queue = queues_[static_cast<size_t>(t)];
    queue.front = n * t / threads;
    const int64_t back = n * (t + 1) / threads;
    queue.back.store(back, std::memory_order_relaxed);
    queue.left.store(back - queue.front, std::memory_order_relaxed);
  }
  const uint32_t loop = (state_.load(std::memory_order_relaxed) & ~(kLoop - 1)) + kLoop;
  state_.store(loop | kOpen);
  state_.notify_all();
  run_ranges(0);
  const uint32_t state = state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  if ((state & kInside) == 0) return;
  prefetch(next, 0, [this] { return helpers_are_gone(); });
  wait_for_helpers();
}

/// Prefetches what `thread` will read of the next loop, until done() returns true.
template <class F>
void Team::prefetch(const LoopReads& next, size_t thread, const F& done) const {
  const size_t range = static_cast<size_t>(next.ranges) * thread / (n_helpers_ + 1);
  // The other half of the L2 cache holds what the loops in between read and write.
  next.fetch(static_cast<int64_t>(range), machine().l2 / 2, done);
}

void Team::run_ranges(size_t self) {
  const auto claim_range = [](WorkQueue& queue) {
    return queue.left.load(std::memory_order_relaxed) > 0 &&
           queue.left.fetch_sub(1, std::memory_order_relaxed) > 0;
  };
  while (claim_range(queues_[self])) range_(context_, queues_[self].front++, self);
  for (size_t other = 1; other <= n_helpers_; ++other) {
    WorkQueue& queue = queues_[(self + other) % (n_helpers_ + 1)];
    while (claim_range(queue)) {
      range_(context_, queue.back.fetch_sub(1, std::memory_order_relaxed) - 1, self);
    }
  }
}

void Team::wait_for_helpers() {
  while (!spin_until([this] { return helpers_are_gone(); }, kCallerSpinTime, false)) {
    const uint32_t left = left_.load();
    if (helpers_are_gone()) return;
    left_.wait(left);
  }
}

void Team::help(size_t self) {
  uint32_t seen = 0;
  while (wait_for_loop(seen)) {
    if (!join()) continue;
    run_ranges(self);
    const LoopReads next = next_;
    const uint32_t state = state_.fetch_sub(1) - 1;
    if ((state & (kInside | kOpen)) == 0) {
      ++left_;
      left_.notify_one();
    }
    prefetch(next, self,
             [&] { return state_.load(std::memory_order_relaxed) / kLoop != state / kLoop; });
  }
}

/// Joins the current loop as a helper. Returns false if the loop is over.
bool Team::join() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

/// Waits for a loop other than number `seen` and stores its number there. Returns false when the
/// team is being destroyed.
bool Team::wait_for_loop(uint32_t& seen) {
  uint32_t state = 0;
  const auto is_new = [&] {
    state = state_.load(std::memory_order_acquire);
    return state / kLoop != seen;
  };
  if (!spin_until(is_new, kSpinTime, false) && !spin_until(is_new, kYieldTime, true)) {
    while (!is_new()) state_.wait(state);
  }
  seen = state / kLoop;
  return !ends_;
}

}  // namespace executorch::cpu
