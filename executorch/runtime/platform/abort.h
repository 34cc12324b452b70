#pragma once

#include <executorch/runtime/platform/compiler.h>

namespace executorch {
namespace runtime {

/// Ends the program through the platform layer. For broken preconditions of the calling code only;
/// bad data is reported as an Error.
ET_NORETURN void runtime_abort();

}  // namespace runtime
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::runtime::runtime_abort;
}  // namespace executor
}  // namespace torch
