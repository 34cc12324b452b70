/// A fused instruction, which does the work of several instructions of the program.
#pragma once

#include <executorch/kernels/optimized/view.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace executorch::optimized {

using runtime::KernelRuntimeContext;

/// One of the program's instructions that a fused instruction replaces.
struct Original {
  /// The operator's name, such as "add.out".
  const char* op;
  /// The instruction's index in its chain of the program; negative if the graph added it (a static
  /// view).
  int64_t number;
  runtime::OpFunction kernel;
  Span<EValue*> args;
};

/// The data that a fused instruction needs at run time. It is made when the method is loaded and
/// lies in the method's memory.
struct FusedCall {
  /// Computes `out`. Returns false, with nothing written, if the fused kernel does not support the
  /// sizes of this call. The originals then run instead and report errors if the sizes are wrong.
  using Run = bool (*)(const FusedCall& call, KernelRuntimeContext& context);
  Run run = nullptr;
  /// The name for messages, such as "linear+gelu".
  const char* name = "";
  /// The name of its events in traces, such as "native_call_linear+gelu".
  const char* traced_name = "";
  EValue* out = nullptr;
  /// The replaced instructions in the order of the program. The last one writes `out`.
  Span<const Original> originals;
  /// The indices of the originals in their chain of the program. Static views, which are in no
  /// chain, are left out.
  Span<const uint32_t> numbers;
  /// The tensors that the originals write besides `out`. They no longer have memory of their own;
  /// if the originals run, they get temporary memory.
  Span<EValue*> intermediates;
  /// Whether the memory of `out` overlaps that of an operand. The result is then computed in
  /// temporary memory and copied.
  bool out_overlaps_operand = false;
};

/// The kernel of every fused instruction. Its first argument holds the address of the FusedCall.
void run_fused(KernelRuntimeContext& context, Span<EValue*> args);
/// Returns the FusedCall whose address the first of a fused instruction's arguments holds.
const FusedCall& fused_call(Span<EValue*> args);

/// Resizes `out` to the sizes of `view`. Returns false if it cannot have these sizes.
bool resize(const Tensor& out, const View& view);

}  // namespace executorch::optimized
