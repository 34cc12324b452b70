#pragma once

#include <executorch/runtime/core/device_memory_buffer.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/executor/program.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace executorch::extension::internal {

/// Zeroed heap memory that begins at a cache line. Large ones take no physical memory until they
/// are written.
class ArenaBuffer final {
 public:
  /// MemoryAllocationFailed when there is not so much memory.
  static runtime::Result<ArenaBuffer> create(size_t size);
  runtime::Span<uint8_t> span() const { return {data_, size_}; }

 private:
  struct Free {
    void operator()(void* block) const;
  };
  ArenaBuffer(void* block, uint8_t* data, size_t size) : block_(block), data_(data), size_(size) {}

  std::unique_ptr<void, Free> block_;
  uint8_t* data_;
  size_t size_;
};

/// Arenas that all methods of a program share, for memory ids 1 and 2. Each has the size that the
/// method with the largest one needs. NotSupported when a method plans one of them on a device
/// other than the CPU.
runtime::Result<std::vector<ArenaBuffer>> make_shared_arenas(const runtime::Program& program);

/// The arenas of one method, one per memory id.
class PlannedMemory final {
 public:
  /// The first `shared.size()` arenas are those of `shared`, which must outlive this; the others
  /// are allocated, on the device the program asks for.
  static runtime::Result<std::unique_ptr<PlannedMemory>> create(
      const runtime::MethodMeta& meta, const std::vector<ArenaBuffer>& shared);

  runtime::HierarchicalAllocator* allocator() { return allocator_.get(); }
  /// Those in the CPU's memory, shared ones included.
  std::vector<runtime::Span<uint8_t>> cpu_arenas() const;

 private:
  PlannedMemory() = default;
  runtime::Error add_arena(size_t size, runtime::etensor::Device device);

  std::vector<ArenaBuffer> buffers_;
  std::vector<runtime::DeviceMemoryBuffer> device_buffers_;
  std::vector<runtime::Span<uint8_t>> spans_;
  std::vector<runtime::etensor::Device> devices_;
  std::unique_ptr<runtime::HierarchicalAllocator> allocator_;
};

}  // namespace executorch::extension::internal
