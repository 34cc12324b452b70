/// Reports of bad arguments by kernels: one log line `op: what was found; what was expected`, a
/// failed context, and an early return.
#pragma once

#include <executorch/cpu/size.h>
#include <executorch/runtime/kernel/kernel_includes.h>
#include <executorch/runtime/platform/log.h>

#include <limits>

/// Unless `condition` holds: logs the printf-style message, fails the kernel's `ctx` with
/// Error::`error` and returns `result`.
#define ET_REQUIRE(ctx, condition, error, result, ...) \
  do {                                                 \
    if (!(condition)) [[unlikely]] {                   \
      ET_LOG(Error, __VA_ARGS__);                      \
      (ctx).fail(::executorch::runtime::Error::error); \
      return result;                                   \
    }                                                  \
  } while (false)

namespace torch::executor::native::internal {

/// A number of steps as KernelRuntimeContext::add_steps() takes it; an invalid one becomes the
/// largest.
constexpr uint64_t steps_of(executorch::cpu::Size steps) {
  return static_cast<uint64_t>(steps.value_or(std::numeric_limits<int64_t>::max()));
}

/// Tells the context what it costs to sort `n` elements.
void tell_comparisons(executorch::runtime::KernelRuntimeContext& ctx, int64_t n);

/// Whether scalar loops of `steps` steps may run for operands that hold `elements` elements in all
/// (see cpu::is_affordable). If so, reports the steps to the context. If not, or if `steps` is
/// invalid, fails the context with InvalidArgument and returns false. To be called wherever the
/// length of a loop depends on arguments rather than on numbers of elements:
///
///   if (!require_affordable(ctx, kOp, Size(windows) * window, elements_of(self, out))) return out;
[[nodiscard]] bool require_affordable(executorch::runtime::KernelRuntimeContext& ctx,
                                      const char* op, executorch::cpu::Size steps,
                                      executorch::cpu::Size elements);

template <class... Tensors>
executorch::cpu::Size elements_of(const Tensors&... tensors) {
  return (executorch::cpu::Size(0) + ... + executorch::cpu::Size(tensors.numel()));
}

}  // namespace torch::executor::native::internal
