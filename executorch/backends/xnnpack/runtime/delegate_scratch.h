/// The engine's scratch memory for one execution of a delegate, from the context's temporary
/// memory.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/runtime/backend/backend_execution_context.h>

namespace executorch::backends::xnnpack {

class DelegateScratch {
 public:
  explicit DelegateScratch(runtime::BackendExecutionContext& context)
      : scratch_(&allocate, &context) {}
  operator cpu::Scratch&() { return scratch_; }

 private:
  static void* allocate(void* context, size_t bytes) {
    return static_cast<runtime::BackendExecutionContext*>(context)->allocate(
        bytes, static_cast<size_t>(cpu::Scratch::kLine));
  }

  cpu::Scratch scratch_;
};

}  // namespace executorch::backends::xnnpack
