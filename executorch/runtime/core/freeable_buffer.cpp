#include <executorch/runtime/core/freeable_buffer.h>

namespace executorch::runtime {

FreeableBuffer::FreeableBuffer(FreeableBuffer&& rhs) noexcept
    : free_fn_(rhs.free_fn_),
      free_uint64_fn_(rhs.free_uint64_fn_),
      free_fn_context_(rhs.free_fn_context_),
      data_(rhs.data_),
      size_(rhs.size_),
      is_uint64_(rhs.is_uint64_) {
  rhs.free_fn_ = nullptr;
  rhs.free_uint64_fn_ = nullptr;
  rhs.free_fn_context_ = nullptr;
  rhs.data_ = 0;
  rhs.size_ = 0;
}

void FreeableBuffer::Free() {
  if (data_ != 0) {
    if (is_uint64_ && free_uint64_fn_ != nullptr) {
      free_uint64_fn_(free_fn_context_, data_, size_);
    } else if (!is_uint64_ && free_fn_ != nullptr) {
      free_fn_(free_fn_context_, reinterpret_cast<void*>(static_cast<uintptr_t>(data_)), size_);
    }
  }
  free_fn_ = nullptr;
  free_uint64_fn_ = nullptr;
  data_ = 0;
  size_ = 0;
}

const void* FreeableBuffer::data() const {
  ET_CHECK_MSG(!is_uint64_, "the buffer is named by a number; use data_uint64_type()");
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(data_));
}

Result<const void*> FreeableBuffer::data_safe() const {
  ET_CHECK_OR_RETURN_ERROR(!is_uint64_, InvalidType,
                           "FreeableBuffer: named by a number, not a pointer");
  return data();
}

Result<uint64_t> FreeableBuffer::data_uint64_type() const {
  ET_CHECK_OR_RETURN_ERROR(is_uint64_, InvalidType,
                           "FreeableBuffer: a pointer, not named by a number");
  return data_;
}

}  // namespace executorch::runtime
