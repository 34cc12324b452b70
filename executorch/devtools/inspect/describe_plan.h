#pragma once

#include <executorch/devtools/inspect/budget.h>
#include <executorch/devtools/inspect/describe.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/schema/program_generated.h>

namespace executorch::devtools {

/// One method of a verified program: memory, values, delegates, instructions. `identity` (may be
/// null) says where the instructions come from. Throws what `budget` does.
Json describe_plan(const executorch_flatbuffer::Program& program,
                   const executorch_flatbuffer::ExecutionPlan& plan,
                   const runtime::DebugIdentity* identity, Budget& budget);

}  // namespace executorch::devtools
