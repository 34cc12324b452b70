/// An instruction that does the work of several.
#pragma once

#include <executorch/kernels/optimized/view.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace executorch::optimized {

using runtime::KernelRuntimeContext;

/// One of the instructions that a fused one stands for.
struct Original {
  const char* op;
  /// In its chain of the file; negative if it stands in none.
  int64_t number;
  runtime::OpFunction kernel;
  Span<EValue*> args;
};

/// What a fused instruction needs at run time; in the method's memory, made when it is loaded.
struct FusedCall {
  /// Computes `out`. False, with nothing written, where sizes of this call are not what the fused
  /// kernel takes; the originals then run instead, and report what is wrong with them.
  using Run = bool (*)(const FusedCall& call, KernelRuntimeContext& context);
  Run run = nullptr;
  /// "linear+gelu"
  const char* name = "";
  /// "native_call_linear+gelu"
  const char* traced_name = "";
  EValue* out = nullptr;
  /// In order; the last one writes `out`.
  Span<const Original> originals;
  /// Where they stand in the file: numbers in their chain.
  Span<const uint32_t> numbers;
  /// What the originals write besides `out`: tensors whose bytes are taken from temporary memory.
  Span<EValue*> intermediates;
  /// `out` lies where an operand does: it is computed elsewhere first.
  bool bounce = false;
};

/// The kernel of every fused instruction. Its first argument holds the address of the FusedCall.
void run_fused(KernelRuntimeContext& context, Span<EValue*> args);
/// That of the arguments of a fused instruction.
const FusedCall& fused_call(Span<EValue*> args);

/// Gives `out` the sizes of `view`; false if it cannot have them.
bool resize(const Tensor& out, const View& view);

}  // namespace executorch::optimized
