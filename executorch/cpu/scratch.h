/// Scratch memory, which a call of the engine needs beside its operands. It comes from the caller,
/// who may refuse it. The engine asks for it before it computes, and gives it back when it returns.
///
///   bool run(Scratch& scratch) {
///     Scratch::Frame frame(scratch);                      // given back at the end of the scope
///     float* const rows = scratch.array<float>(Size(m) * k);
///     ThreadScratch<float> tiles(scratch, tile_floats);   // one for each thread of a loop
///     if (rows == nullptr || !tiles) return false;        // refused, or the size overflows
///     tiles.parallel_for(n, grain, [&](int64_t begin, int64_t end, float* tile) { ... });
///     return true;
///   }
#pragma once

#include <executorch/cpu/size.h>
#include <executorch/cpu/threadpool.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <type_traits>

namespace executorch::cpu {

/// A stack of pieces of memory. It also counts the multiply-adds of the calls that it was passed to
/// (add_products()). Only one thread may use it at a time.
class Scratch {
  struct Block;  // the header at the beginning of each piece that the source returned

 public:
  /// Allocates at least `bytes` bytes, aligned to kLine, that live as long as the Scratch.
  /// Returning null refuses the memory.
  using Source = void* (*)(void* owner, size_t bytes);
  Scratch(Source source, void* owner) : source_(source), owner_(owner) {}
  ~Scratch() {
    if constexpr (kGuard > 0) end();
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// The size of a cache line. Every piece begins on a cache line's boundary and consists of whole
  /// lines.
  static constexpr int64_t kLine = 64;
  /// Bytes behind every piece that nobody may touch, in builds with AddressSanitizer only. There,
  /// accesses beyond a piece, and accesses to a piece after the end of its frame, are reported.
#if defined(__SANITIZE_ADDRESS__)
  static constexpr int64_t kGuard = kLine;
#else
  static constexpr int64_t kGuard = 0;
#endif

  /// A scope: its destructor gives back all memory that was taken since its constructor. Frames
  /// must end in the reverse order of their beginnings.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), block_(scratch.block_), at_(scratch.at_) {}
    ~Frame() {
      scratch_.block_ = block_;
      scratch_.at_ = at_;
      if constexpr (kGuard > 0) scratch_.guard_free();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    Block* const block_;
    const size_t at_;
  };

  /// Returns `count` uninitialised elements on a cache line's boundary; a count of 0 is allowed and
  /// gives a non-null pointer. Returns null if the source refuses or `count` is negative or
  /// invalid.
  template <class T>
  T* array(Size count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kLine);
    return static_cast<T*>(take(count * sizeof(T)));
  }

  /// Adds to the count of multiply-adds that calls make. A convolution that runs as matrix products
  /// counts them twice: the count serves as a bound on work, not as a measurement.
  void add_products(Size products) {
    products_ += products;
  }
  /// The number of multiply-adds counted so far; invalid if it exceeds int64.
  Size products() const {
    return products_;
  }

  /// Forbids access to these bytes of a piece until the piece is given back. Does nothing if kGuard
  /// is 0.
  static void guard(void* from, size_t bytes);

 private:
  friend class HeapScratch;
  friend class LoopScratch;
  void* take(Size bytes);
  void guard_free() const;
  /// Removes all guards from the source's memory.
  void end();

  Source source_;
  void* owner_;
  Block* first_ = nullptr;
  Block* block_ = nullptr;  // the block that pieces are taken from; blocks after it are free
  size_t at_ = 0;           // the offset of the first free byte of block_
  Size products_ = 0;
};

/// A buffer of `count` elements for each thread that a loop of the calling thread can run on.
template <class T>
class ThreadScratch {
 public:
  /// `threads` may be 1 if the loop has a single range.
  ThreadScratch(Scratch& scratch, Size count, size_t threads = loop_threads())
      : threads_(threads),
        stride_(round_up(count * sizeof(T), Scratch::kLine) + Scratch::kGuard),
        data_(scratch.array<uint8_t>(stride_ * threads_)) {
    for (size_t i = 0; Scratch::kGuard > 0 && data_ != nullptr && i < threads_; ++i) {
      const Size used = count * sizeof(T);
      Scratch::guard(reinterpret_cast<uint8_t*>(of_thread(i)) + used.value(),
                     static_cast<size_t>((stride_ - used).value()));
    }
  }

  /// Whether the memory was granted.
  explicit operator bool() const { return data_ != nullptr; }

  /// parallel_for() that calls f(begin, end, T* buffer) with the buffer of the running thread.
  template <class F>
  void parallel_for(int64_t n, int64_t grain, const F& f) const {
    struct Loop {
      const ThreadScratch& self;
      const F& f;
    } loop = {*this, f};
    if (n <= 0) return;
    internal::run_parallel(
        n, grain,
        [](void* context, int64_t begin, int64_t end, size_t thread) {
          const Loop& l = *static_cast<const Loop*>(context);
          l.f(begin, end, l.self.of_thread(thread));
        },
        &loop, threads_);
  }

  size_t threads() const { return threads_; }
  T* of_thread(size_t thread) const {
    return reinterpret_cast<T*>(data_ + thread * static_cast<size_t>(stride_.value()));
  }

 private:
  const size_t threads_;
  const Size stride_;  // bytes
  uint8_t* const data_;
};

/// A Scratch for each thread of a loop whose body calls functions that take a Scratch. The threads'
/// Scratches get their memory from `scratch`, one thread at a time; nobody else may use `scratch`
/// while a loop runs. The destructor gives all of this memory back.
///
///   LoopScratch threads(scratch);
///   return threads.parallel_for(n, grain, [&](int64_t begin, int64_t end, Scratch& own) {
///     return product(begin, end).run(own);
///   });
class LoopScratch {
 public:
  explicit LoopScratch(Scratch& scratch);

  /// parallel_for() with bool f(begin, end, Scratch&). Returns false if memory was refused or a
  /// call of f returned false; the calls that had not begun by then are skipped.
  template <class F>
  [[nodiscard]] bool parallel_for(int64_t n, int64_t grain, const F& f) {
    if (threads_ == 1 || n <= grain) return n <= 0 || f(int64_t{0}, n, scratch_);
    if (n <= 0) return true;
    if (slots_ == nullptr) return false;
    struct Loop {
      LoopScratch& self;
      const F& f;
    } loop = {*this, f};
    internal::run_parallel(
        n, grain,
        [](void* context, int64_t begin, int64_t end, size_t thread) {
          const Loop& l = *static_cast<const Loop*>(context);
          std::atomic<bool>& refused = l.self.refused_;
          if (refused.load(std::memory_order_relaxed)) return;
          if (!l.f(begin, end, l.self.slots_[thread].scratch)) refused.store(true);
        },
        &loop, threads_);
    count_products();
    return !refused_.load();
  }

 private:
  struct alignas(Scratch::kLine) Slot {
    Scratch scratch;
  };
  static void* ask(void* self, size_t bytes);
  void count_products();

  Scratch& scratch_;
  const Scratch::Frame frame_;
  const size_t threads_;
  Slot* const slots_;
  std::mutex turn_;
  std::atomic<bool> refused_{false};
};

/// A Scratch whose memory comes from the C heap, for tests and tools. The destructor frees the
/// memory. A request that would exceed `limit` bytes in all is refused.
class HeapScratch {
 public:
  explicit HeapScratch(size_t limit = SIZE_MAX) : left_(limit), scratch_(&allocate, this) {}
  ~HeapScratch();
  HeapScratch(const HeapScratch&) = delete;
  HeapScratch& operator=(const HeapScratch&) = delete;
  operator Scratch&() { return scratch_; }

 private:
  struct Piece {
    Piece* next;
  };
  static void* allocate(void* self, size_t bytes);

  size_t left_;
  Piece* pieces_ = nullptr;
  Scratch scratch_;
};

}  // namespace executorch::cpu
