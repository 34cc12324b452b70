/// Passing tensors to the compute engine (executorch/cpu).
#pragma once

#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>
#include <executorch/kernels/portable/internal/check.h>
#include <executorch/kernels/portable/internal/dtype.h>

#include <optional>
#include <type_traits>

namespace torch::executor::native::internal {

/// The engine's type for elements of type t; none if the engine does not store them, such as
/// Double.
constexpr std::optional<executorch::cpu::Type> engine_type(ScalarType t) {
  switch (t) {
    case ScalarType::Float:
      return executorch::cpu::Type::F32;
    case ScalarType::Half:
      return executorch::cpu::Type::F16;
    case ScalarType::BFloat16:
      return executorch::cpu::Type::BF16;
    default:
      return std::nullopt;
  }
}

/// A function of the engine over runs of elements, with one or two operands, each of which is an
/// array of `type` or a number.
using EngineLoop = void (*)(const void* function, executorch::cpu::Type type,
                            const executorch::cpu::Operand* in, void* out, int64_t n);

/// The EngineLoop that applies *activation, a cpu::Activation.
inline void activation_loop(const void* activation, executorch::cpu::Type type,
                            const executorch::cpu::Operand* in, void* out, int64_t n) {
  executorch::cpu::apply(*static_cast<const executorch::cpu::Activation*>(activation), type,
                         in[0].data, out, n);
}
inline void elu_loop(const void* elu, executorch::cpu::Type type,
                     const executorch::cpu::Operand* in, void* out, int64_t n) {
  executorch::cpu::apply(*static_cast<const executorch::cpu::Elu*>(elu), type, in[0].data, out, n);
}
template <executorch::cpu::Function function>
void function_loop(const void*, executorch::cpu::Type type, const executorch::cpu::Operand* in,
                   void* out, int64_t n) {
  executorch::cpu::apply(function, type, in[0].data, out, n);
}
template <executorch::cpu::Arithmetic op>
void arithmetic_loop(const void*, executorch::cpu::Type type, const executorch::cpu::Operand* in,
                     void* out, int64_t n) {
  executorch::cpu::apply(op, type, in[0], in[1], out, n);
}

/// The engine's scratch memory for one call of a kernel, from the context's temporary memory:
///
///   EngineScratch scratch(ctx);
///   if (!require_scratch(ctx, kOp, gemm.run(scratch))) return out;
class EngineScratch {
 public:
  explicit EngineScratch(KernelRuntimeContext& ctx) : ctx_(ctx), scratch_(&allocate, this) {}
  /// Reports the work of the engine's calls to the context.
  ~EngineScratch() {
    constexpr int64_t kProductsPerStep = 64;
    ctx_.add_steps(steps_of(scratch_.products() / kProductsPerStep));
  }
  operator executorch::cpu::Scratch&() { return scratch_; }

 private:
  static void* allocate(void* self, size_t bytes) {
    auto& own = *static_cast<EngineScratch*>(self);
    if (!own.ctx_.has_temp_memory()) {
      executorch::cpu::Scratch& heap = own.heap_;
      return heap.array<char>(bytes);
    }
    auto memory =
        own.ctx_.allocate_temp(bytes, static_cast<size_t>(executorch::cpu::Scratch::kLine));
    return memory.ok() ? memory.get() : nullptr;
  }

  KernelRuntimeContext& ctx_;
  /// Used if the context, which may be a user's, has no temporary memory.
  executorch::cpu::HeapScratch heap_;
  executorch::cpu::Scratch scratch_;
};

/// Returns `granted`. If it is false, that is, if the engine was refused memory, logs that and
/// fails the kernel.
inline bool require_scratch(KernelRuntimeContext& ctx, const char* op, bool granted) {
  ET_REQUIRE(ctx, granted, MemoryAllocationFailed, false, "%s: no scratch memory for these sizes",
             op);
  return true;
}

/// The engine's type for elements of T.
template <class T>
using EngineType =
    std::conditional_t<std::is_same_v<T, Half>, executorch::cpu::F16,
                       std::conditional_t<std::is_same_v<T, BFloat16>, executorch::cpu::BF16, T>>;

}  // namespace torch::executor::native::internal
