/// An instruction that does the work of several.
#pragma once

#include <executorch/kernels/optimized/view.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace executorch::optimized {

using runtime::KernelRuntimeContext;

/// One of the program's instructions that a fused instruction replaces.
struct Original {
  /// The operator's name, "add.out".
  const char* op;
  /// Its index in its chain of the program; negative for one that the graph added (a static view).
  int64_t number;
  runtime::OpFunction kernel;
  Span<EValue*> args;
};

/// What a fused instruction needs at run time; in the method's memory, made when it is loaded.
struct FusedCall {
  /// Computes `out`. False, with nothing written, where the fused kernel does not support the sizes
  /// of this call. Then the originals run instead, and report errors if the sizes are wrong.
  using Run = bool (*)(const FusedCall& call, KernelRuntimeContext& context);
  Run run = nullptr;
  /// "linear+gelu"
  const char* name = "";
  /// "native_call_linear+gelu"
  const char* traced_name = "";
  EValue* out = nullptr;
  /// In the order of the program; the last one writes `out`.
  Span<const Original> originals;
  /// Their indices in their chain of the program, but for those that are in none.
  Span<const uint32_t> numbers;
  /// Tensors that the originals write besides `out`. They have no memory of their own any more:
  /// where the originals run, they get temporary memory.
  Span<EValue*> intermediates;
  /// The memory of `out` overlaps that of an operand: the result is computed in temporary memory
  /// and then copied.
  bool bounce = false;
};

/// The kernel of every fused instruction. Its first argument holds the address of the FusedCall.
void run_fused(KernelRuntimeContext& context, Span<EValue*> args);
/// The FusedCall whose address the first of a fused instruction's arguments holds.
const FusedCall& fused_call(Span<EValue*> args);

/// Gives `out` the sizes of `view`; false if it cannot have them.
bool resize(const Tensor& out, const View& view);

}  // namespace executorch::optimized
