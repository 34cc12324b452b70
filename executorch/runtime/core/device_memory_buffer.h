#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::runtime {

/// Owns a piece of device memory and frees it when destroyed. It can be moved but not copied.
class DeviceMemoryBuffer final {
 public:
  /// NotFound when no allocator is registered for the device type; otherwise the allocator's error.
  static Result<DeviceMemoryBuffer> create(size_t size, etensor::DeviceType type,
                                           etensor::DeviceIndex index = 0,
                                           size_t alignment = DeviceAllocator::kDefaultAlignment);

  /// Owns nothing.
  DeviceMemoryBuffer() = default;
  ~DeviceMemoryBuffer() { release(); }
  DeviceMemoryBuffer(DeviceMemoryBuffer&& other) noexcept { take(other); }
  DeviceMemoryBuffer& operator=(DeviceMemoryBuffer&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  DeviceMemoryBuffer(const DeviceMemoryBuffer&) = delete;
  DeviceMemoryBuffer& operator=(const DeviceMemoryBuffer&) = delete;

  /// An address of the device; the host must not read through it.
  void* data() const { return data_; }
  size_t size() const { return size_; }
  Span<uint8_t> as_span() const { return {static_cast<uint8_t*>(data_), size_}; }

 private:
  void release();
  void take(DeviceMemoryBuffer& other);

  DeviceAllocator* allocator_ = nullptr;
  void* data_ = nullptr;
  size_t size_ = 0;
  etensor::DeviceIndex index_ = 0;
};

}  // namespace executorch::runtime
