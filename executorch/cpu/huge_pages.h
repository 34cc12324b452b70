/// Memory in huge pages, which is read fastest. Mapped program files lie in huge pages as well where
/// the system allows it.
#pragma once

#include <executorch/cpu/prefetch.h>
#include <executorch/cpu/size.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
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

/// Reserves the addresses of `capacity` bytes and gives them out one array after the other, so that
/// arrays share huge pages: in a huge_array() each, the last part of every array would lie in small
/// pages. Memory is taken from the system when it is first written. Several threads may allocate at
/// once; everything is freed with the arena.
class HugePageArena {
 public:
  explicit HugePageArena(size_t capacity)
      : memory_(huge_array<char>(capacity)), capacity_(memory_ == nullptr ? 0 : capacity) {}

  /// Returns `bytes` uninitialised bytes on a cache line's boundary, or null if they do not fit.
  void* allocate(size_t bytes) {
    constexpr auto kAlignment = static_cast<size_t>(kLine);
    size_t at = used_.load(std::memory_order_relaxed), whole = 0;
    do {
      if (bytes > capacity_ - at) return nullptr;
      whole = std::min((bytes + kAlignment - 1) / kAlignment * kAlignment, capacity_ - at);
    } while (!used_.compare_exchange_weak(at, at + whole, std::memory_order_relaxed));
    return memory_.get() + at;
  }

 private:
  HugeArray<char> memory_;
  const size_t capacity_;
  std::atomic<size_t> used_{0};
};

}  // namespace executorch::cpu
