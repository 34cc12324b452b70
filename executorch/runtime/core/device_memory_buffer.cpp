#include <executorch/runtime/core/device_memory_buffer.h>

#include <utility>

namespace executorch::runtime {

Result<DeviceMemoryBuffer> DeviceMemoryBuffer::create(size_t size, etensor::DeviceType type,
                                                      etensor::DeviceIndex index,
                                                      size_t alignment) {
  DeviceAllocator* allocator = get_device_allocator(type);
  ET_CHECK_OR_RETURN_ERROR(allocator != nullptr, NotFound,
                           "no allocator is registered for device type %d", static_cast<int>(type));
  ET_ASSIGN_OR_RETURN(void* const data, allocator->allocate(size, index, alignment));
  DeviceMemoryBuffer buffer;
  buffer.allocator_ = allocator;
  buffer.data_ = data;
  buffer.size_ = size;
  buffer.index_ = index;
  return Result<DeviceMemoryBuffer>(std::move(buffer));
}

void DeviceMemoryBuffer::release() {
  if (data_ != nullptr) {
    allocator_->deallocate(data_, index_);
    data_ = nullptr;
    size_ = 0;
  }
}

void DeviceMemoryBuffer::take(DeviceMemoryBuffer& other) {
  allocator_ = other.allocator_;
  data_ = other.data_;
  size_ = other.size_;
  index_ = other.index_;
  other.data_ = nullptr;
  other.size_ = 0;
}

}  // namespace executorch::runtime
