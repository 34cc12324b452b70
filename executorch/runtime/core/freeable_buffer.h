#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

namespace executorch::runtime {

/// Bytes together with the function that frees them, which Free() or the destructor calls. A buffer
/// can be moved but not copied; the moved-from buffer is empty. The bytes may lie in a foreign
/// address space; a number then takes the place of the pointer.
class FreeableBuffer final {
 public:
  using FreeFn = void (*)(void* context, void* data, size_t size);
  using FreeUInt64Fn = void (*)(void* context, uint64_t data_uint64, size_t size);

  FreeableBuffer() = default;
  /// `free_fn` may be null if nothing has to be freed.
  FreeableBuffer(const void* data, size_t size, FreeFn free_fn, void* free_fn_context = nullptr)
      : free_fn_(free_fn),
        free_fn_context_(free_fn_context),
        data_(reinterpret_cast<uintptr_t>(data)),
        size_(size) {}
  explicit FreeableBuffer(const uint64_t data_uint64, size_t size, FreeUInt64Fn free_fn,
                          void* free_fn_context = nullptr)
      : free_uint64_fn_(free_fn),
        free_fn_context_(free_fn_context),
        data_(data_uint64),
        size_(size),
        is_uint64_(true) {}
  FreeableBuffer(FreeableBuffer&& rhs) noexcept;
  FreeableBuffer(const FreeableBuffer&) = delete;
  FreeableBuffer& operator=(const FreeableBuffer&) = delete;
  FreeableBuffer& operator=(FreeableBuffer&&) = delete;
  ~FreeableBuffer() { Free(); }

  /// Gives the bytes back now; afterwards the buffer is empty.
  void Free();

  /// Bytes; 0 when empty.
  size_t size() const { return size_; }
  /// Null when empty. Aborts for a buffer that is named by a number.
  const void* data() const;
  /// The pointer; InvalidType for a buffer that is named by a number.
  Result<const void*> data_safe() const;
  /// The number; InvalidType for a buffer that is a pointer.
  Result<uint64_t> data_uint64_type() const;

 private:
  FreeFn free_fn_ = nullptr;
  FreeUInt64Fn free_uint64_fn_ = nullptr;
  void* free_fn_context_ = nullptr;
  uint64_t data_ = 0;
  size_t size_ = 0;
  bool is_uint64_ = false;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::FreeableBuffer;
}  // namespace torch::executor
