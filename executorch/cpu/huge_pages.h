/// Memory in huge pages, for measuring: what a mapped program file is, and the fastest to read.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace executorch::cpu {

template <class T>
using HugeArray = std::unique_ptr<T[], decltype(&std::free)>;

/// n elements without values, null where there is no memory; in usual pages where the system has no
/// others.
template <class T>
HugeArray<T> huge_array(size_t n) {
  constexpr size_t kHugePage = 2 << 20;
  const size_t bytes = (n * sizeof(T) + kHugePage - 1) / kHugePage * kHugePage;
  HugeArray<T> array(static_cast<T*>(std::aligned_alloc(kHugePage, bytes)), &std::free);
#if defined(MADV_HUGEPAGE)
  if (array != nullptr) (void)::madvise(array.get(), bytes, MADV_HUGEPAGE);
#endif
  return array;
}

}  // namespace executorch::cpu
