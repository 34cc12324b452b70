#pragma once

#include <executorch/runtime/core/heap_allocator.h>
#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime::internal {

/// Memory from the platform's heap: temporary memory of methods whose caller provides none, or not
/// enough.
class PlatformMemoryAllocator final : public HeapAllocator<&pal_allocate, &pal_free> {};

}  // namespace executorch::runtime::internal
