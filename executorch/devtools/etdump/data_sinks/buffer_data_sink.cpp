#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/runtime/platform/log.h>

#include <cstring>

namespace executorch::etdump {

using runtime::Result;

Result<BufferDataSink> BufferDataSink::create(runtime::Span<uint8_t> buffer,
                                              size_t alignment) noexcept {
  ET_CHECK_OR_RETURN_ERROR(buffer.data() != nullptr && buffer.size() > 0, InvalidArgument,
                           "debug buffer: no memory");
  ET_CHECK_OR_RETURN_ERROR(alignment > 0 && (alignment & (alignment - 1)) == 0, InvalidArgument,
                           "debug buffer: the alignment %zu is no power of two", alignment);
  return BufferDataSink(buffer, alignment);
}

Result<BufferDataSink> BufferDataSink::create(void* ptr, size_t size, size_t alignment) noexcept {
  return create({static_cast<uint8_t*>(ptr), size}, alignment);
}

Result<size_t> BufferDataSink::write(const void* ptr, size_t size) {
  if (size == 0) return used_;
  const auto address = reinterpret_cast<uintptr_t>(buffer_.data()) + used_;
  const size_t padding = (alignment_ - address % alignment_) % alignment_;
  const size_t rest = buffer_.size() - used_;
  ET_CHECK_OR_RETURN_ERROR(padding <= rest && size <= rest - padding, OutOfResources,
                           "debug buffer of %zu bytes: %zu are used, %zu more do not fit",
                           buffer_.size(), used_, size);
  if (ptr == nullptr) {
    std::memset(buffer_.data() + used_, 0, padding + size);
  } else {
    std::memset(buffer_.data() + used_, 0, padding);
    std::memcpy(buffer_.data() + used_ + padding, ptr, size);
  }
  const size_t offset = used_ + padding;
  used_ = offset + size;
  return offset;
}

}  // namespace executorch::etdump
