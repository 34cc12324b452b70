/// Loops that compute much per element are compiled twice: for every processor of the architecture,
/// and for those with wide vectors. Functions marked ET_WIDE may run only where has_wide_vectors().
#pragma once

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define ET_WIDE [[gnu::target("avx2,fma")]]
#else
#define ET_WIDE
#endif

namespace torch::executor::native::internal {

inline bool has_wide_vectors() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace torch::executor::native::internal
