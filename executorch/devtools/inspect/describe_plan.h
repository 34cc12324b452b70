#pragma once

#include <executorch/devtools/inspect/describe.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/schema/program_generated.h>

namespace executorch::devtools {

/// One method of a verified program: memory, values, delegates, instructions. `identity` (may be
/// null) says where the instructions come from.
Json describe_plan(const executorch_flatbuffer::Program& program,
                   const executorch_flatbuffer::ExecutionPlan& plan,
                   const runtime::DebugIdentity* identity);

}  // namespace executorch::devtools
