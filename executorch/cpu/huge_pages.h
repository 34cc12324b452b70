/// Memory in huge pages, which is read fastest. Mapped program files lie in huge pages as well where
/// the system allows it.
#pragma once

#include <executorch/cpu/size.h>

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace executorch::cpu {

template <class T>
using HugeArray = std::unique_ptr<T[], decltype(&std::free)>;

/// Allocates n uninitialised elements on a huge page's boundary. Returns null if the memory cannot
/// be had. The part that does not fill a whole huge page lies in pages of the usual size; so does
/// everything where the system has no huge pages.
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
