/// Memory that is read soon.
#pragma once

#include <cstdint>

namespace executorch::cpu {

constexpr int64_t kLine = 64;  // bytes

/// GCC drops the call of a function that does nothing but prefetch, as of one without effect. A
/// function that calls this has one, which costs nothing.
inline void keep_prefetches() {
#if defined(__GNUC__)
  asm volatile("");
#endif
}

namespace internal {
/// Locality as GCC counts it: 3 is L1, 2 is L2.
template <int kLocality>
void prefetch_lines(const void* from, int64_t bytes) {
#if defined(__GNUC__)
  for (int64_t i = 0; i < bytes; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i, 0, kLocality);
  }
  keep_prefetches();
#else
  (void)from, (void)bytes;
#endif
}
}  // namespace internal

/// Asks for the lines that begin at from + i * 64, i * 64 < bytes; any address will do. They come
/// into L1, for what reads them within microseconds.
inline void prefetch(const void* from, int64_t bytes) {
  internal::prefetch_lines<3>(from, bytes);
}
/// The same into L2, for many lines that are read later: in L1 they would evict what is read now,
/// and a core waits for few lines of L1 at a time.
inline void prefetch_l2(const void* from, int64_t bytes) {
  internal::prefetch_lines<2>(from, bytes);
}

}  // namespace executorch::cpu
