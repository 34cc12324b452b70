#pragma once

#include <cstdint>

#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>
#include <executorch/runtime/core/span.h>

namespace executorch::etdump {

/// A sink over memory of the caller's, which outlives it.
class BufferDataSink : public DataSinkBase {
 public:
  /// `alignment`, a power of two, holds for the addresses that blobs are written to.
  /// InvalidArgument for no memory or another alignment.
  static runtime::Result<BufferDataSink> create(runtime::Span<uint8_t> buffer,
                                                size_t alignment = 64) noexcept;
  static runtime::Result<BufferDataSink> create(void* ptr, size_t size,
                                                size_t alignment = 64) noexcept;

  /// Without memory: writes are OutOfResources.
  BufferDataSink() = default;
  BufferDataSink(BufferDataSink&&) = default;
  BufferDataSink& operator=(BufferDataSink&&) = default;
  ~BufferDataSink() override = default;

  /// Padding is zeros. OutOfResources, with nothing written, when the rest is too small.
  runtime::Result<size_t> write(const void* ptr, size_t size) override;

  runtime::Result<size_t> get_storage_size() const { return buffer_.size(); }
  size_t get_used_bytes() const override { return used_; }

 private:
  BufferDataSink(runtime::Span<uint8_t> buffer, size_t alignment)
      : buffer_(buffer), alignment_(alignment) {}

  runtime::Span<uint8_t> buffer_;
  size_t used_ = 0;
  size_t alignment_ = 64;
};

}  // namespace executorch::etdump
