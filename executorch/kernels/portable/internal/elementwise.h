/// Elementwise operators of one to three operands, with type promotion, broadcasting, any dim order
/// and any mix of element types.
///
/// The caller passes a function that is generic in the compute type:
///
///   return elementwise(ctx, {.op = "mul.out"}, out, [](auto a, auto b) { return a * b; },
///                      self, other);
///
/// It is compiled into one loop per compute type (dtype.h) over contiguous arrays, which threads
/// share. Operands that are broadcast, strided or of another type are first copied to contiguous
/// arrays of that type, in chunks that stay in the L1 cache. Other operands are used where they
/// lie.
#pragma once

#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/loop.h>
#include <executorch/kernels/portable/internal/promote.h>
#include <executorch/kernels/portable/internal/wide.h>

#include <initializer_list>
#include <utility>

namespace torch::executor::native::internal {

/// A tensor or a number.
struct Operand {
  const Tensor* tensor = nullptr;
  const Scalar* number = nullptr;
  Operand(const Tensor& t) : tensor(&t) {}
  Operand(const Scalar& s) : number(&s) {}
};

/// Which types an operator takes and gives. The common type is that to which the operands are
/// promoted; the result has the common type unless a rule says otherwise.
struct Rules {
  const char* op;  // for messages, such as "mul.out"
  /// If the common type is Bool or an integer, the operator computes in Float and its result is
  /// Float, as for sin, div and sigmoid.
  bool int_to_float = false;
  /// The result is Bool whatever the common type is, as for eq and isnan.
  bool to_bool = false;
  /// Whether the common type may be Bool, an integer type, or a floating type.
  bool allow_bool = true;
  bool allow_int = true;
  bool allow_float = true;
  /// The first operand is a condition, as that of where: it is not promoted with the others, and
  /// its elements are read as 0 or 1.
  bool condition_first = false;
  /// The out tensor must have the type of the result. Otherwise it may have any type that the
  /// result can be cast to.
  bool exact_out = false;
  /// The nanoseconds that an element takes in float, if that is far more than reading it takes. In
  /// double, which is computed without vectors, an element counts eight times as many. They limit
  /// the work of a call (KernelRuntimeContext::add_steps).
  int64_t steps = 0;
};
/// Rules::steps of functions that scalar code computes by sums and iterations, such as erfinv and
/// lgamma.
constexpr int64_t kSpecialSteps = 64;

constexpr int kMaxInputs = kMaxOperands - 1;
constexpr int64_t kGrain = 16384;  // elements: some microseconds, what waking a thread costs
constexpr int64_t kMinRow = 64;    // shorter rows are gathered many at a time

/// An operation prepared for its operands: the loops, and how each operand is read.
struct Pass {
  Loop loop;  // operand 0 is the output, 1... the inputs
  ScalarType common = ScalarType::Undefined;
  Compute compute = Compute::Int;
  bool to_bool = false;
  void* out = nullptr;
  ScalarType out_type = ScalarType::Undefined;
  int n_inputs = 0;
  const void* in[kMaxInputs] = {};
  ScalarType in_type[kMaxInputs] = {};
  /// Whether the operand's elements are converted to the common type before they are converted to
  /// the compute type. A narrow integer type wraps them, Half and BFloat16 round them.
  bool in_wraps[kMaxInputs] = {};
  union {
    int64_t i;
    float f;
    double d;
  } number[kMaxInputs] = {};  // where in[k] points when operand k is a number
};

/// in[k]: n values of the compute type; out: n values of the compute type (or of bool).
using InnerLoop = void (*)(const void* const* in, void* out, int64_t n, const void* function);

/// Promotes, checks and broadcasts the operands, resizes `out` and fills `pass`. Returns false if
/// the context failed.
[[nodiscard]] bool prepare(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out,
                           std::initializer_list<Operand> inputs, Pass& pass);
/// `inner_loop` may be called by several threads at a time.
void run(const Pass& pass, InnerLoop inner_loop, const void* function);
/// The same with a function of the engine, if the compute type is float. Operands of the result's
/// type whose elements, or rows, are contiguous are read where they lie.
void run_by_engine(const Pass& pass, EngineLoop loop, const void* function);
/// The same in bool, if all operands and the result are Bool.
void run_in_bool(const Pass& pass, InnerLoop inner_loop, const void* function);
/// The same in int32_t, if the operands' common type and the result's type are Int.
void run_in_int32(const Pass& pass, InnerLoop inner_loop, const void* function);

template <class C, class F, size_t... k>
[[gnu::always_inline]] inline void loop_body(const void* const* in, void* out, int64_t n,
                                             const void* function, std::index_sequence<k...>) {
  const F f = *static_cast<const F*>(function);  // a copy: what it holds stays in registers
  using X = StoredAs<C>;
  const X* const x[] = {static_cast<const X*>(in[k])...};
  auto* y = static_cast<decltype(f((k, C{})...))*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[k][i]...);
}

// Flattened, because functions called in the loop must be inlined for it to be vectorized.
template <class C, class F, size_t n_inputs>
[[gnu::flatten]] void plain_loop(const void* const* in, void* out, int64_t n,
                                 const void* function) {
  loop_body<C, F>(in, out, n, function, std::make_index_sequence<n_inputs>());
}

template <class C, class F, size_t n_inputs>
ET_WIDE [[gnu::flatten]] void wide_loop(const void* const* in, void* out, int64_t n,
                                        const void* function) {
  loop_body<C, F>(in, out, n, function, std::make_index_sequence<n_inputs>());
}

template <class C, class F, class... In>
InnerLoop inner_loop_of() {
  return has_wide_vectors() ? wide_loop<C, F, sizeof...(In)> : plain_loop<C, F, sizeof...(In)>;
}

/// Which compute types a function is compiled for. AllAndInt32: for int32_t too, in which results
/// of type Int are computed; its low 32 bits must depend on no others of its operands.
enum class Kinds { All, AllAndInt32, Int, Float };

/// out = f(inputs...), element by element. `f` takes and returns C for C in int64_t, float and
/// double (as `kinds` says), or returns bool where rules.to_bool.
template <Kinds kinds = Kinds::All, class F, class... In>
Tensor& elementwise(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out, const F& f,
                    const In&... inputs) {
  Pass pass;
  if (!prepare(ctx, rules, out, {Operand(inputs)...}, pass)) return out;
  if constexpr (kinds == Kinds::Int) {
    run(pass, inner_loop_of<int64_t, F, In...>(), &f);
  } else if constexpr (kinds == Kinds::Float) {
    with_float_compute(pass.compute,
                       [&](auto tag) { run(pass, inner_loop_of<decltype(tag), F, In...>(), &f); });
  } else {
    if constexpr (kinds == Kinds::AllAndInt32 && is_compiled(ScalarType::Int)) {
      if (pass.common == ScalarType::Int && pass.out_type == ScalarType::Int) {
        run_in_int32(pass, inner_loop_of<int32_t, F, In...>(), &f);
        return out;
      }
    }
    with_compute(pass.compute,
                 [&](auto tag) { run(pass, inner_loop_of<decltype(tag), F, In...>(), &f); });
  }
  return out;
}

/// out = f(inputs...) of Bool operands, for an `f` from bool to bool.
template <class F, class... In>
Tensor& elementwise_in_bool(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out, const F& f,
                            const In&... inputs) {
  Pass pass;
  if (!prepare(ctx, rules, out, {Operand(inputs)...}, pass)) return out;
  run_in_bool(pass, inner_loop_of<bool, F, In...>(), &f);
  return out;
}

/// The same, in float by a function of the engine's, which is handed `engine_function`.
template <Kinds kinds = Kinds::Float, class F, class... In>
Tensor& elementwise_with(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out,
                         EngineLoop loop, const void* engine_function, const F& f,
                         const In&... inputs) {
  Pass pass;
  if (!prepare(ctx, rules, out, {Operand(inputs)...}, pass)) return out;
  if (pass.compute == Compute::Float) {
    run_by_engine(pass, loop, engine_function);
    return out;
  }
  if constexpr (kinds == Kinds::AllAndInt32 && is_compiled(ScalarType::Int)) {
    if (pass.common == ScalarType::Int && pass.out_type == ScalarType::Int) {
      run_in_int32(pass, inner_loop_of<int32_t, F, In...>(), &f);
      return out;
    }
  }
  if constexpr (kinds != Kinds::Float && computes_in<int64_t>()) {
    if (pass.compute == Compute::Int) {
      run(pass, inner_loop_of<int64_t, F, In...>(), &f);
      return out;
    }
  }
  if constexpr (computes_in<double>()) run(pass, inner_loop_of<double, F, In...>(), &f);
  return out;
}

}  // namespace torch::executor::native::internal
