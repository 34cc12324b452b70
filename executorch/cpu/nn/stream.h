/// Non-temporal stores for results that are larger than the caches. A store through the caches
/// would first read the line that it overwrites, and would evict data that is still needed.
///
/// A kernel computes such results piece by piece in a chunk on its stack, and prefetches its
/// operands meanwhile, so that memory is busy while it computes:
///
///   const bool past = overflows_caches(bytes_read + bytes_written);
///   parallel_for(n, grain, [&](int64_t begin, int64_t end) {
///     write(y + begin, end - begin, past, [&](int64_t i, int64_t m, T* to) { ... });
///   });
#pragma once

#include <executorch/cpu/prefetch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace executorch::cpu {

/// Whether a loop that reads and writes `bytes` bytes in all evicts the beginning of its result
/// from the last-level cache.
bool overflows_caches(int64_t bytes);

namespace internal {
/// For tests: sets the size that overflows_caches() compares with. Returns the previous one.
int64_t set_cache_bytes(int64_t bytes);
}  // namespace internal

/// Copies `bytes` bytes from src to dst. Whole cache lines of dst are written past the caches. The
/// calling thread must call end_stream() after a series of these, before other threads may read
/// dst.
void stream(const void* src, void* dst, size_t bytes);
void end_stream();

constexpr int64_t kStreamBytes = 4096;  // the size of a chunk, which stays in L1

/// The number of elements of a chunk at y such that the next chunk begins on a cache line's
/// boundary.
template <class T>
int64_t chunk_at(const T* y) {
  const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % kLine);
  return (kStreamBytes - misplaced) / static_cast<int64_t>(sizeof(T));
}

/// The number of elements of y before the first one that begins a cache line, at most n.
template <class T>
int64_t before_line(const T* y, int64_t n) {
  const auto bytes = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(y) % kLine);
  return std::min(n, bytes / static_cast<int64_t>(sizeof(T)));
}

/// Writes y[0, n) by calls of f(i, m, to), each of which stores elements [i, i + m) at `to`. `to`
/// is y + i, or if `past` a chunk that is then streamed to y + i.
template <class T, class F>
void write(T* y, int64_t n, bool past, const F& f) {
  if (!past) return f(int64_t{0}, n, y);
  alignas(kLine) T chunk[kStreamBytes / sizeof(T)];
  for (int64_t i = 0, m; i < n; i += m) {
    m = std::min(n - i, chunk_at(y + i));
    f(i, m, chunk);
    stream(chunk, y + i, static_cast<size_t>(m) * sizeof(T));
  }
  end_stream();
}

}  // namespace executorch::cpu
