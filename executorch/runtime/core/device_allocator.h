#pragma once

#include <cstddef>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>

namespace executorch::runtime {

/// Memory of one type of device, and copies between it and the host. The runtime brings none; a
/// backend registers its own.
class DeviceAllocator {
 public:
  static constexpr size_t kDefaultAlignment = MemoryAllocator::kDefaultAlignment;

  virtual ~DeviceAllocator() = default;

  /// Allocates `nbytes` bytes on device number `index` of the type, aligned to `alignment`, a power
  /// of two. Returns an address in the device's memory, or an error.
  virtual Result<void*> allocate(size_t nbytes, etensor::DeviceIndex index,
                                 size_t alignment = kDefaultAlignment) = 0;
  /// Frees memory that allocate() returned for the same device.
  virtual void deallocate(void* ptr, etensor::DeviceIndex index) = 0;
  /// Both copies must be complete when they return, because the next instruction reads `dst`.
  virtual Error copy_host_to_device(void* dst, const void* src, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual Error copy_device_to_host(void* dst, const void* src, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual etensor::DeviceType device_type() const = 0;
};

class DeviceAllocatorRegistry {
 public:
  static DeviceAllocatorRegistry& instance();

  /// Registers `alloc`, which must live as long as the process. Aborts if its device type already
  /// has an allocator.
  void register_allocator(DeviceAllocator* alloc);
  /// Null when there is none.
  DeviceAllocator* get_allocator(etensor::DeviceType type);

 private:
  DeviceAllocator* allocators_[etensor::kNumDeviceTypes] = {};
};

/// The same for the registry of the process.
void register_device_allocator(DeviceAllocator* alloc);
DeviceAllocator* get_device_allocator(etensor::DeviceType type);

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::DeviceAllocator;
using ::executorch::runtime::DeviceAllocatorRegistry;
using ::executorch::runtime::get_device_allocator;
using ::executorch::runtime::register_device_allocator;
}  // namespace torch::executor
