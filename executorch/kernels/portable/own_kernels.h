/// Registering this project's kernels, all of them or a selection.
#pragma once

#include <executorch/runtime/kernel/boxing.h>

#include <cstdint>

namespace torch::executor::native {

/// A registered table of this project's kernels. The rewriter of programs (kernels/optimized) uses
/// it to tell these kernels from a user's. It must live as long as the process.
struct OwnKernels {
  Span<const Kernel> rows;
  const OwnKernels* next = nullptr;
};

/// Registers the rows of the table. Messages name `library` as their origin.
void register_own_kernels(OwnKernels& kernels, const char* library);

/// The list of the tables registered so far.
const OwnKernels* own_kernels();

/// An operator of a selection that was compiled for `types` only: bit n stands for ScalarType n.
struct SelectedOperator {
  const char* name;
  uint64_t types;
};

/// Whether all tensors of `args` have types that the operator was compiled for. If not, fails `ctx`
/// with NotSupported and logs these types.
bool has_selected_types(KernelRuntimeContext& ctx, const SelectedOperator& op,
                        Span<executorch::runtime::EValue*> args);

/// Calls boxed<Fn> after checking that `op` was compiled for the types of the arguments.
template <auto Fn, const SelectedOperator& op>
void boxed_for_types(KernelRuntimeContext& ctx, Span<executorch::runtime::EValue*> args) {
  if (has_selected_types(ctx, op, args)) executorch::runtime::boxed<Fn>(ctx, args);
}

}  // namespace torch::executor::native
