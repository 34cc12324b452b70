#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/core/result.h>

namespace executorch::runtime::internal {

/// Room for `n` Ts, uninitialised and never null, that lasts as long as the allocator's memory.
template <typename T>
Result<T*> allocate_list(MemoryAllocator& allocator, size_t n) {
  T* const list = allocator.allocateList<T>(n > 0 ? n : 1);
  ET_CHECK_OR_RETURN_ERROR(list != nullptr, MemoryAllocationFailed,
                           "the method allocator has no room for %zu * %zu bytes", n, sizeof(T));
  return list;
}

}  // namespace executorch::runtime::internal
