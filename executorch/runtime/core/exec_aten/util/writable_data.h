#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::ET_RUNTIME_NAMESPACE::internal {

/// Where the tensor's bytes may be written, null only if it has no elements. The one way to memory
/// that a program decides about: InvalidProgram for a constant, or another tensor whose bytes may be
/// mapped for reading only, InvalidState for elements without memory.
ET_NODISCARD Result<void*> writable_data(const aten::Tensor& tensor);

/// Makes `view`, a tensor on bytes of `source`, one that may only be read if `source` is.
void keep_read_only(const aten::Tensor& source, const aten::Tensor& view);

}  // namespace executorch::ET_RUNTIME_NAMESPACE::internal
