#pragma once

#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace executorch::runtime::internal {

/// Calls `kernel`, and reports it to the context's tracer as native_call_<operator>, the operator
/// without its namespace: the time at level kProfileAllEvents, then what it computed at level
/// kIntermediateOutputs. `name` is "aten::add" or, with no `overload` (null or ""), also
/// "aten::add.out"; operators of executorch_prim are called and not reported.
/// `args` as programs have them: what was computed stands last, or, where that is a list that
/// gathers single results, these stand before it.
void call_traced(const char* name, const char* overload, OpFunction kernel,
                 KernelRuntimeContext& context, Span<EValue*> args);

}  // namespace executorch::runtime::internal
