#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {

/// The planned memory of a method: one buffer for each memory id. Everything is borrowed.
class HierarchicalAllocator final {
 public:
  /// buffers[i] is memory id i here, i + 1 in the program (id 0 there is reserved).
  explicit HierarchicalAllocator(Span<Span<uint8_t>> buffers) : buffers_(buffers) {}
  /// `planned_buffer_devices` tells where each buffer lies; empty means all on the CPU.
  HierarchicalAllocator(Span<Span<uint8_t>> buffers,
                        Span<const etensor::Device> planned_buffer_devices)
      : buffers_(buffers), devices_(planned_buffer_devices) {}
  /// At most 16 allocators, whose whole buffers are taken.
  ET_DEPRECATED HierarchicalAllocator(uint32_t n_allocators, MemoryAllocator* allocators);

  HierarchicalAllocator(const HierarchicalAllocator&) = delete;
  HierarchicalAllocator& operator=(const HierarchicalAllocator&) = delete;
  HierarchicalAllocator(HierarchicalAllocator&&) = delete;
  HierarchicalAllocator& operator=(HierarchicalAllocator&&) = delete;

  /// The address of `size_bytes` bytes at `offset_bytes` of a buffer. InvalidArgument for an
  /// unknown id or an offset and size whose sum overflows, MemoryAllocationFailed past the end.
  ET_NODISCARD Result<void*> get_offset_address(uint32_t memory_id, size_t offset_bytes,
                                                size_t size_bytes);

  Span<const etensor::Device> planned_buffer_devices() const { return devices_; }

 private:
  static constexpr size_t kMaxLegacyAllocators = 16;

  Span<uint8_t> legacy_buffers_[kMaxLegacyAllocators];
  Span<Span<uint8_t>> buffers_;
  Span<const etensor::Device> devices_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::HierarchicalAllocator;
}  // namespace torch::executor
