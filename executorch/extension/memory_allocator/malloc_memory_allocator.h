#pragma once

#include <executorch/extension/memory_allocator/memory_allocator_utils.h>
#include <executorch/runtime/core/heap_allocator.h>

#include <cstdlib>
#include <vector>  // for programs that include only this

namespace executorch::extension {

/// Takes its memory from malloc, so it needs no size in advance. reset() takes everything back and
/// keeps what was needed for the next time; the destructor frees. Not safe to share between
/// threads.
class MallocMemoryAllocator : public runtime::internal::HeapAllocator<&std::malloc, &std::free> {};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::MallocMemoryAllocator;
}  // namespace torch::executor::util
