/// Prefetching of memory that will be read soon.
#pragma once

#include <cstdint>

namespace executorch::cpu {

constexpr int64_t kLine = 64;  // bytes

/// GCC takes a function that only prefetches for one without effect and drops calls to it. A
/// function that calls keep_prefetches() has an effect in GCC's eyes. The call itself costs no
/// instruction.
inline void keep_prefetches() {
#if defined(__GNUC__)
  asm volatile("");
#endif
}

/// Prefetches the cache lines at from + i * 64 for every i with i * 64 < bytes. `from` may be any
/// address, also an invalid one. kLocality 3 prefetches into L1; 2 prefetches into L2, for memory
/// that is read later.
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
