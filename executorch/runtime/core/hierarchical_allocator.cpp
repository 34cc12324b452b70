#include <executorch/runtime/core/hierarchical_allocator.h>

namespace executorch::runtime {

HierarchicalAllocator::HierarchicalAllocator(uint32_t n_allocators, MemoryAllocator* allocators)
    : buffers_(legacy_buffers_, n_allocators) {
  const bool is_there = allocators != nullptr || n_allocators == 0;
  ET_CHECK_MSG(n_allocators <= kMaxLegacyAllocators && is_there,
               "%u allocators at %p; expected at most %zu, and an address",
               static_cast<unsigned>(n_allocators), static_cast<void*>(allocators),
               kMaxLegacyAllocators);
  for (uint32_t i = 0; i < n_allocators; ++i) {
    legacy_buffers_[i] = {allocators[i].base_address(), allocators[i].size()};
  }
}

Result<void*> HierarchicalAllocator::get_offset_address(uint32_t memory_id, size_t offset_bytes,
                                                        size_t size_bytes) {
  ET_CHECK_OR_RETURN_ERROR(memory_id < buffers_.size(), InvalidArgument,
                           "memory id %u; the method was given %zu planned buffers",
                           static_cast<unsigned>(memory_id), buffers_.size());
  size_t end;
  ET_CHECK_OR_RETURN_ERROR(!__builtin_add_overflow(offset_bytes, size_bytes, &end), InvalidArgument,
                           "memory id %u: offset %zu + size %zu overflows",
                           static_cast<unsigned>(memory_id), offset_bytes, size_bytes);
  const Span<uint8_t> buffer = buffers_[memory_id];
  ET_CHECK_OR_RETURN_ERROR(end <= buffer.size(), MemoryAllocationFailed,
                           "memory id %u: offset %zu + size %zu exceeds the buffer's %zu bytes",
                           static_cast<unsigned>(memory_id), offset_bytes, size_bytes,
                           buffer.size());
  ET_CHECK_OR_RETURN_ERROR(buffer.data() != nullptr || end == 0, InvalidArgument,
                           "memory id %u: the buffer of %zu bytes is null",
                           static_cast<unsigned>(memory_id), buffer.size());
  return static_cast<void*>(buffer.data() + offset_bytes);
}

}  // namespace executorch::runtime
