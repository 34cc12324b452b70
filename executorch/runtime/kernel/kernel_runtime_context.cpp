#include <executorch/runtime/kernel/kernel_runtime_context.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

Result<void*> KernelRuntimeContext::allocate_temp(size_t size, size_t alignment) {
  ET_CHECK_OR_RETURN_ERROR(temp_memory_.allocator() != nullptr, NotFound,
                           "the kernel needs temporary memory; the method has no temp allocator");
  void* memory = temp_memory_.allocate(size, alignment);
  ET_CHECK_OR_RETURN_ERROR(memory != nullptr, MemoryAllocationFailed,
                           "no room for %zu temporary bytes", size);
  return memory;
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE
