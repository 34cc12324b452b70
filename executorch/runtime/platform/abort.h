#pragma once

#include <executorch/runtime/platform/compiler.h>

namespace executorch::runtime {

/// Ends the program through the platform layer. For broken preconditions of the calling code only;
/// bad data is reported as an Error.
ET_NORETURN void runtime_abort();

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::runtime_abort;
}  // namespace torch::executor
