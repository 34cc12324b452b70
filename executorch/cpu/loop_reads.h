/// Memory that loops are about to read.
///
/// Between two products nothing is read while one thread does what lies between them. A program
/// does the same in every call: so a pool remembers which matrix followed each, and helpers that
/// wait for the next loop bring the beginning of their share of it into their caches. A wrong guess
/// costs a little bandwidth.
#pragma once

#include <executorch/cpu/prefetch.h>

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

}  // namespace executorch::cpu
