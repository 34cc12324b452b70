#pragma once

#include <cstddef>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>

namespace executorch {
namespace runtime {

/// Memory of one type of device, and copies between it and the host. The runtime brings none; a
/// backend registers its own.
class DeviceAllocator {
 public:
  static constexpr size_t kDefaultAlignment = MemoryAllocator::kDefaultAlignment;

  virtual ~DeviceAllocator() = default;

  /// `nbytes` bytes on device number `index` of the type, at a multiple of `alignment`, a power of
  /// two, or why there are none. The address is the device's.
  virtual Result<void*> allocate(size_t nbytes, etensor::DeviceIndex index,
                                 size_t alignment = kDefaultAlignment) = 0;
  /// Gives back what allocate() gave for the same device.
  virtual void deallocate(void* ptr, etensor::DeviceIndex index) = 0;
  /// Both must be complete when they return: the next instruction reads `dst`.
  virtual Error copy_host_to_device(void* dst, const void* src, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual Error copy_device_to_host(void* dst, const void* src, size_t nbytes,
                                    etensor::DeviceIndex index) = 0;
  virtual etensor::DeviceType device_type() const = 0;
};

class DeviceAllocatorRegistry {
 public:
  static DeviceAllocatorRegistry& instance();

  /// `alloc` must live as long as the program. Aborts for a second one of a device type.
  void register_allocator(DeviceAllocator* alloc);
  /// Null when there is none.
  DeviceAllocator* get_allocator(etensor::DeviceType type);

 private:
  DeviceAllocator* allocators_[etensor::kNumDeviceTypes] = {};
};

/// The same on the one registry.
void register_device_allocator(DeviceAllocator* alloc);
DeviceAllocator* get_device_allocator(etensor::DeviceType type);

}  // namespace runtime
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::runtime::DeviceAllocator;
using ::executorch::runtime::DeviceAllocatorRegistry;
using ::executorch::runtime::get_device_allocator;
using ::executorch::runtime::register_device_allocator;
}  // namespace executor
}  // namespace torch
