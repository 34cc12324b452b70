/// Memory in huge pages: what a mapped program file is, and the fastest to read.
#pragma once

#include <executorch/cpu/size.h>

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace executorch::cpu {

template <class T>
using HugeArray = std::unique_ptr<T[], decltype(&std::free)>;

/// n elements without values, null where there is no memory; what does not fill a huge page is in
/// usual ones, as all of it where the system has no others.
template <class T>
HugeArray<T> huge_array(size_t n) {
  constexpr size_t kHugePage = 2 << 20;
  const Size bytes = Size(n) * sizeof(T);
  void* data = nullptr;
  if (!bytes.fits<size_t>() ||
      ::posix_memalign(&data, kHugePage, static_cast<size_t>(bytes.value())) != 0) {
    data = nullptr;
  }
#if defined(MADV_HUGEPAGE)
  const size_t whole = static_cast<size_t>(bytes.value_or(0)) / kHugePage * kHugePage;
  if (data != nullptr && whole > 0) (void)::madvise(data, whole, MADV_HUGEPAGE);
#endif
  return {static_cast<T*>(data), &std::free};
}

}  // namespace executorch::cpu
