#include <executorch/kernels/portable/internal/check.h>

#include <bit>
#include <cinttypes>

namespace torch::executor::native::internal {

using executorch::cpu::Size;

void tell_comparisons(executorch::runtime::KernelRuntimeContext& ctx, int64_t n) {
  const int64_t rounds = std::bit_width(static_cast<uint64_t>(n));
  ctx.add_steps(steps_of(Size(n) * rounds));
}

bool require_affordable(executorch::runtime::KernelRuntimeContext& ctx, const char* op, Size steps,
                        Size elements) {
  const Size most = std::numeric_limits<int64_t>::max();
  ET_REQUIRE(ctx, executorch::cpu::is_affordable(steps, elements), InvalidArgument, false,
             "%s: the arguments ask for %" PRId64 " steps on tensors of %" PRId64
             " elements; so long a call is refused",
             op, steps.value_or(most.value()), elements.value_or(most.value()));
  ctx.add_steps(steps_of(steps));
  return true;
}

}  // namespace torch::executor::native::internal
