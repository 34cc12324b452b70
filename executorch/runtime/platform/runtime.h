#pragma once

#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::runtime {

/// Starts the platform layer. Every program calls it once before anything else of the runtime;
/// calling it again is harmless. Module does it for its users.
void runtime_init();

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::runtime_init;
}  // namespace torch::executor
