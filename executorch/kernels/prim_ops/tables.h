/// The prim operators: symbolic scalars of dynamic shapes, and the two tensor operators that
/// control flow and views are made of. Every program may use them, so they belong to `executorch`.
///
/// They are boxed by hand: a result may change the tag of the value it is written to. Arguments
/// are the operator's own followed by the result. A wrong number of them fails the context with
/// InvalidProgram, a wrong type with InvalidType, a bad value with InvalidArgument.
#pragma once

#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace torch::executor::function {

executorch::runtime::Span<const executorch::runtime::Kernel> symbolic_ops();
executorch::runtime::Span<const executorch::runtime::Kernel> tensor_ops();

}  // namespace torch::executor::function
