/// Memory that loops are about to read.
///
/// While one thread computes the last range of a loop, or the operators between two matrix products,
/// the memory bus is idle. A program reads the same matrices in the same order in every call. So a
/// pool remembers which matrix was read after which (ReadHistory), and threads that wait prefetch
/// the beginning of their share of the expected matrix into their caches. A wrong guess costs a
/// little bandwidth. The keys of attention are such a matrix, too.
#pragma once

#include <executorch/cpu/prefetch.h>

#include <cstddef>
#include <cstdint>

namespace executorch::cpu {

/// The memory that index i of a loop reads: `rows` pieces of `row_bytes` bytes, `stride_bytes`
/// apart. The first piece begins at data + i * index_bytes.
struct Reads {
  const void* data = nullptr;
  int64_t index_bytes = 0;
  int64_t rows = 0, row_bytes = 0, stride_bytes = 0;
};

/// Bytes. A smaller matrix may still be in a cache when it is read again, so its reads are not
/// announced.
constexpr int64_t kLeastReads = 128 * 1024;

/// Announces that the next loop of the calling thread reads `reads` from memory.
void will_read(const Reads& reads);

/// The memory that a loop reads, and how the loop is divided: into `ranges` ranges of `indices`
/// indices each.
struct LoopReads {
  Reads reads;
  int64_t ranges = 0, indices = 0;

  /// Prefetches the memory that the loop reads from range `range` on, in the order of reading.
  /// Stops after `most_bytes` bytes, or when busy(), which is called every few cache lines, returns
  /// true.
  template <class F>
  void fetch(int64_t range, int64_t most_bytes, const F& busy) const;
};

template <class F>
void LoopReads::fetch(int64_t range, int64_t most_bytes, const F& busy) const {
  constexpr int64_t kLines = 8;
  int64_t left = most_bytes / kLine;
  keep_prefetches();
  for (int64_t i = range * indices; i < ranges * indices; ++i) {
    const char* row = static_cast<const char*>(reads.data) + i * reads.index_bytes;
    for (int64_t r = 0; r < reads.rows; ++r, row += reads.stride_bytes) {
      for (int64_t at = 0; at < reads.row_bytes; at += kLine) {
        if (left-- % kLines == 0 && (left < 0 || busy())) return;
        __builtin_prefetch(row + at, 0, 2);
      }
    }
  }
}

/// Remembers which matrix loops read after which one, and how many loops that read no matrix lay
/// between them, in a hash table of fixed size.
class ReadHistory {
 public:
  /// To be called when a loop begins; `loop` says which matrix it reads, if any. Returns the loop
  /// that will read the next matrix, as it was when the matrix before was last read. The result has
  /// no data if that is unknown, or if more than kMostBetween loops come before: what was prefetched
  /// would have left the caches by then.
  const LoopReads& record_and_predict(const LoopReads& loop) {
    if (loop.reads.data != nullptr) {
      entry(last_) = {last_, loop, between_};
      last_ = loop.reads.data;
      between_ = 0;
    } else {
      ++between_;
    }
    const Entry& next = entry(last_);
    const bool soon = between_ <= next.between && next.between - between_ <= kMostBetween;
    return next.after == last_ && soon ? next.loop : nothing_;
  }

 private:
  static constexpr int64_t kMostBetween = 1;
  struct Entry {
    const void* after = nullptr;
    LoopReads loop;
    int64_t between = 0;  // loops
  };
  // kEntries exceeds the number of products of large models. kPlaces is the number of places that
  // are probed before the entry of another matrix is replaced.
  static constexpr size_t kEntries = 1024, kPlaces = 32;

  Entry& entry(const void* data) {
    // The layers of a model lie at equal distances. A single multiplication would map such
    // addresses to few places, so all bits are mixed.
    uint64_t hash = reinterpret_cast<uintptr_t>(data);
    hash = (hash ^ hash >> 31) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9u;
    const auto first = static_cast<size_t>(hash >> 32);
    for (size_t i = 0; i < kPlaces; ++i) {
      Entry& e = entries_[(first + i) % kEntries];
      if (e.after == data || e.after == nullptr) return e;
    }
    return entries_[first % kEntries];
  }

  Entry entries_[kEntries];
  const void* last_ = nullptr;
  int64_t between_ = 0;  // loops since last_ was read
  const LoopReads nothing_ = {};
};

}  // namespace executorch::cpu
