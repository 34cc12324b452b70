/// Memory that loops are about to read.
///
/// Between two products nothing is read while one thread does what lies between them. A program
/// does the same in every call: so a pool remembers which matrix followed each (ReadHistory), and
/// helpers that wait for the next loop prefetch the beginning of their share of it into their
/// caches. A wrong guess costs a little bandwidth.
#pragma once

#include <executorch/cpu/prefetch.h>

#include <cstddef>
#include <cstdint>

namespace executorch::cpu {

/// What index i of a loop reads: `rows` pieces of `row_bytes`, `stride_bytes` apart, from
/// data + i * index_bytes on.
struct Reads {
  const void* data = nullptr;
  int64_t index_bytes = 0;
  int64_t rows = 0, row_bytes = 0, stride_bytes = 0;
};

/// The next loop of the calling thread reads that, from memory.
void will_read(const Reads& reads);

/// What a loop reads, and how it is divided: `ranges` of `indices` each.
struct LoopReads {
  Reads reads;
  int64_t ranges = 0, indices = 0;

  /// Asks for the first lines that a thread will read whose ranges begin with `range`, until they
  /// are as many as a cache can hold beside other things, or busy(), asked every few lines, is
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

/// Which matrix loops read after which: a hash table of fixed size.
class ReadHistory {
 public:
  /// A loop begins, which may read a matrix. Returns what was read after that matrix, or after the
  /// last one before a loop that reads none, when it was last read; without data if that is
  /// unknown.
  const LoopReads& next_after(const LoopReads& loop) {
    if (loop.reads.data != nullptr) {
      entry(last_) = {last_, loop};
      last_ = loop.reads.data;
    }
    const Entry& next = entry(last_);
    return next.after == last_ ? next.loop : nothing_;
  }

 private:
  struct Entry {
    const void* after = nullptr;
    LoopReads loop;
  };
  // More than large models have products; places that are tried before another matrix's entry is
  // replaced.
  static constexpr size_t kEntries = 1024, kPlaces = 32;

  Entry& entry(const void* data) {
    // The layers of a model lie at equal distances, which one multiplication would map to few
    // places: all bits are mixed.
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
  const LoopReads nothing_ = {};
};

}  // namespace executorch::cpu
