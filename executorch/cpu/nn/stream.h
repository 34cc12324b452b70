/// Results that are larger than the caches, written past them: a store through the caches first
/// reads the line that it overwrites, and evicts what others still need.
///
/// A kernel makes such results piece by piece in a chunk on its stack, with what it reads next
/// asked for in advance, so that memory works while it computes:
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

/// Whether a loop that moves so many bytes leaves nothing of its result's beginning in the
/// last-level cache.
bool overflows_caches(int64_t bytes);

namespace internal {
/// For tests: what overflows_caches compares with from now on. Returns what it was.
int64_t set_cache_bytes(int64_t bytes);
}  // namespace internal

/// dst[0, bytes) = src, past the caches as far as dst covers whole lines. The calling thread ends a
/// series of these by end_stream(), before others may read dst.
void stream(const void* src, void* dst, size_t bytes);
void end_stream();

constexpr int64_t kStreamBytes = 4096;  // of a chunk, which stays in a first-level cache

/// Elements of T to write at y in one chunk, so that the next one begins with a cache line.
template <class T>
int64_t chunk_at(const T* y) {
  const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y) % kLine);
  return (kStreamBytes - misplaced) / static_cast<int64_t>(sizeof(T));
}

/// Elements of y until the first that begins a cache line, at most n.
template <class T>
int64_t before_line(const T* y, int64_t n) {
  const auto bytes = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(y) % kLine);
  return std::min(n, bytes / static_cast<int64_t>(sizeof(T)));
}

/// y[0, n) by calls f(i, m, to), each for [i, i + m): `to` is y + i, or a chunk if `past`.
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
