/// Registering this project's kernels, all of them or a selection.
#pragma once

#include <executorch/runtime/kernel/boxing.h>

#include <cstdint>

namespace torch::executor::native {

/// A table of ours that was registered, so that who rewrites programs (kernels/optimized) can tell
/// our kernels from a user's. Lives as long as the program.
struct OwnKernels {
  Span<const Kernel> rows;
  const OwnKernels* next = nullptr;
};

/// Registers the rows for `library`, by whose name messages call it.
void register_own_kernels(OwnKernels& kernels, const char* library);

/// The tables registered so far; each leads to the next.
const OwnKernels* own_kernels();

/// An operator of a selection that was compiled for `types` only: bit n stands for ScalarType n.
struct SelectedOperator {
  const char* name;
  uint64_t types;
};

/// Fails `ctx` with NotSupported, and says which types there are, if a tensor of `args` has
/// another.
bool has_selected_types(KernelRuntimeContext& ctx, const SelectedOperator& op,
                        Span<executorch::runtime::EValue*> args);

/// boxed<Fn>, after the check that `op` was compiled for the types of the arguments.
template <auto Fn, const SelectedOperator& op>
void boxed_for_types(KernelRuntimeContext& ctx, Span<executorch::runtime::EValue*> args) {
  if (has_selected_types(ctx, op, args)) executorch::runtime::boxed<Fn>(ctx, args);
}

}  // namespace torch::executor::native
