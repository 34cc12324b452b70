#pragma once

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace executorch::extension {

/// Serves ranges of `size` bytes at `data`, which the caller owns and keeps alive as long as the
/// loader and every buffer it gave out: loads point into it.
class BufferDataLoader final : public runtime::DataLoader {
 public:
  BufferDataLoader(const void* data, size_t size)
      : data_(static_cast<const uint8_t*>(data)), size_(size) {}

  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const DataLoader::SegmentInfo&) const override {
    ET_CHECK_OK_OR_RETURN_ERROR(check_range(offset, size));
    return runtime::FreeableBuffer(data_ + offset, size, /*free_fn=*/nullptr);
  }

  ET_NODISCARD runtime::Result<size_t> size() const override { return size_; }

  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo&,
                                        void* buffer) const override {
    ET_CHECK_OK_OR_RETURN_ERROR(check_range(offset, size));
    ET_CHECK_OR_RETURN_ERROR(buffer != nullptr || size == 0, InvalidArgument,
                             "buffer loader: cannot load %zu bytes into a null buffer", size);
    if (size != 0) std::memcpy(buffer, data_ + offset, size);
    return runtime::Error::Ok;
  }

 private:
  runtime::Error check_range(size_t offset, size_t size) const {
    ET_CHECK_OR_RETURN_ERROR(
        offset <= size_ && size <= size_ - offset, InvalidArgument,
        "buffer loader: cannot load %zu bytes at offset %zu, the buffer has %zu bytes", size,
        offset, size_);
    ET_CHECK_OR_RETURN_ERROR(data_ != nullptr || size == 0, InvalidArgument,
                             "buffer loader: the buffer of %zu bytes is null", size_);
    return runtime::Error::Ok;
  }

  const uint8_t* data_;
  size_t size_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::BufferDataLoader;
}  // namespace torch::executor::util
