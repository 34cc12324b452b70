/// Checks of boxed arguments.
#pragma once

#include <executorch/kernels/portable/internal/check.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace torch::executor::function {

using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Kernel;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::Span;

/// Fails `ctx` unless there are `n` arguments.
inline bool check_count(KernelRuntimeContext& ctx, const char* op, Span<EValue*> args, size_t n) {
  ET_REQUIRE(ctx, args.size() == n, InvalidProgram, false,
             "%s: has %zu arguments, expected %zu (its own and the result)", op, args.size(), n);
  return true;
}

/// Fails `ctx` because `value` is not `expected`; always false.
inline bool fail_type(KernelRuntimeContext& ctx, const char* op, const char* expected,
                      const EValue& value) {
  ET_REQUIRE(ctx, false, InvalidType, false, "%s: an argument is %s, expected %s", op,
             executorch::runtime::tag_to_string(value.tag), expected);
  return false;
}

/// check_count() for an operator whose last argument takes a number. It may not be where a tensor
/// or list is, which other instructions, inputs and outputs know as one.
inline bool check_number_call(KernelRuntimeContext& ctx, const char* op, Span<EValue*> args,
                              size_t n) {
  if (!check_count(ctx, op, args, n)) return false;
  const EValue& slot = *args[n - 1];
  return slot.isScalar() || slot.isNone() || fail_type(ctx, op, "a slot for a number", slot);
}

}  // namespace torch::executor::function
