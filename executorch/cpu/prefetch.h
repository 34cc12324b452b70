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

/// Asks for the lines that begin at from + i * 64, i * 64 < bytes; any address will do. Locality: 3 is
/// the first-level cache, 2 the second, for what is read later.
template <int kLocality = 3>
void prefetch(const void* from, int64_t bytes) {
#if defined(__GNUC__)
  for (int64_t i = 0; i < bytes; i += kLine) {
    __builtin_prefetch(static_cast<const char*>(from) + i, 0, kLocality);
  }
  keep_prefetches();
#else
  (void)from, (void)bytes;
#endif
}

}  // namespace executorch::cpu
