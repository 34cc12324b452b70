#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/profiler.h>  // for programs that include only this

namespace executorch::runtime {

/// Hands out pieces of one buffer of the caller, front to back; all are given back at once by
/// reset(). The buffer must outlive the allocator. Subclasses may take memory from elsewhere.
class MemoryAllocator {
 public:
  /// Bytes; a power of two.
  static constexpr size_t kDefaultAlignment = alignof(void*);

  /// `size` bytes at `base_address`, which may be null when `size` is 0.
  MemoryAllocator(uint32_t size, uint8_t* base_address);
  virtual ~MemoryAllocator() = default;
  MemoryAllocator(const MemoryAllocator&) = delete;
  MemoryAllocator& operator=(const MemoryAllocator&) = delete;
  MemoryAllocator(MemoryAllocator&&) = delete;
  MemoryAllocator& operator=(MemoryAllocator&&) = delete;

  /// `size` bytes whose address is a multiple of `alignment`. Null, with a log line, when the
  /// buffer has not that much left or `alignment` is not a power of two.
  /// Inline, as all virtual functions here: applications derive from this class with run-time type
  /// information, which the library itself is compiled without and so could not hold for them.
  virtual void* allocate(size_t size, size_t alignment = kDefaultAlignment) {
    return take(size, alignment);
  }

  /// Room for one T; its constructor is not called. Null as above.
  template <typename T>
  T* allocateInstance(size_t alignment = alignof(T)) {
    return static_cast<T*>(allocate(sizeof(T), alignment));
  }

  /// Room for `size` Ts; constructors are not called. Null as above, and when the product of
  /// sizes does not fit in size_t.
  template <typename T>
  T* allocateList(size_t size, size_t alignment = alignof(T)) {
    return static_cast<T*>(allocate_array(size, sizeof(T), alignment));
  }

  virtual uint8_t* base_address() const { return begin_; }
  /// Bytes of the whole buffer.
  virtual uint32_t size() const { return size_; }
  /// Bytes handed out since the last reset, padding included.
  virtual size_t used_size() const { return static_cast<size_t>(cur_ - begin_); }
  virtual size_t free_size() const { return static_cast<size_t>(end_ - cur_); }

  /// Takes everything back: all pointers handed out become invalid.
  virtual void reset() { cur_ = begin_; }

  /// Kept for callers of the profiler before ETDump; does nothing.
  void enable_profiling(const char* name) { (void)name; }

 protected:
  int32_t prof_id() const { return -1; }

  static bool isPowerOf2(size_t value) { return value > 0 && (value & (value - 1)) == 0; }

  /// The first address from `ptr` on that is a multiple of `alignment`, a power of two.
  static uint8_t* alignPointer(void* ptr, size_t alignment) {
    const uintptr_t mask = alignment - 1;
    return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(ptr) + mask) & ~mask);
  }

 private:
  void* take(size_t size, size_t alignment);
  void* bump(size_t size, size_t alignment);
  void* allocate_array(size_t n, size_t element_bytes, size_t alignment);

  uint8_t* const begin_;
  uint8_t* const end_;
  uint8_t* cur_;
  const uint32_t size_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MemoryAllocator;
}  // namespace torch::executor
