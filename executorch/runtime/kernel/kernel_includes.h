/// Includes everything that a kernel's source needs: the tensor types, checks, dispatch over
/// element types, the context, and registration (ET_OP, EXECUTORCH_LIBRARY).
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/boxing.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_name.h>
