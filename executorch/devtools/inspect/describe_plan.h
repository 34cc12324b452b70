#pragma once

#include <executorch/devtools/inspect/describe.h>
#include <executorch/schema/program_generated.h>

namespace executorch::devtools {

/// One method of a verified program: memory, values, delegates, instructions.
Json describe_plan(const executorch_flatbuffer::Program& program,
                   const executorch_flatbuffer::ExecutionPlan& plan);

}  // namespace executorch::devtools
