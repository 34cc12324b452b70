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
  bool condition_first = false;  // as in Rules
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

/// condition ? x : y, for operands of Rules::condition_first.
struct Select {
  template <class C>
  C operator()(uint8_t condition, C x, C y) const {
    return condition != 0 ? x : y;
  }
};

/// in[k]: n values of the compute type, or of Bool, for a condition; out: n values of the compute
/// type (or of bool).
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
/// The same in the operands' common type, if with_narrow() has it and it is the result's type too,
/// unless that is Bool by rule.
void run_narrow(const Pass& pass, InnerLoop inner_loop, const void* function);

template <class C, class F, size_t... k>
[[gnu::always_inline]] inline void loop_body(const void* const* in, void* out, int64_t n,
                                             const void* function, std::index_sequence<k...>) {
  const F f = *static_cast<const F*>(function);  // a copy: what it holds stays in registers
  // Bool is computed as a byte that is 0 or 1. If `!=` made it so, compilers would make branches of
  // it, which they do not vectorize.
  constexpr bool is_bool = std::is_same_v<C, bool>;
  using X = std::conditional_t<is_bool, uint8_t, C>;
  const auto value = [](auto v) {
    if constexpr (is_bool) {
      const auto byte = static_cast<uint8_t>(v);
      return byte < 1 ? byte : uint8_t{1};
    } else {
      return v;
    }
  };
  if constexpr (std::is_same_v<F, Select>) {
    const auto* const condition = static_cast<const uint8_t*>(in[0]);
    const X *const a = static_cast<const X*>(in[1]), *const b = static_cast<const X*>(in[2]);
    X* y = static_cast<X*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = value(f(condition[i], a[i], b[i]));
  } else {
    const X* const x[] = {static_cast<const X*>(in[k])...};
    auto* y = static_cast<decltype(value(f((k, X{})...)))*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = value(f(value(x[k][i])...));
  }
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

/// Unsigned of `size` bytes.
template <size_t size>
using Bits = std::conditional_t<
    size == 1, uint8_t,
    std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

template <class C, class F, class... In>
InnerLoop inner_loop_of() {
  constexpr bool is_int = std::is_integral_v<C> && !std::is_same_v<C, bool>;
  using Chosen = std::conditional_t<is_int, Bits<sizeof(C)>, C>;
  if constexpr (std::is_same_v<F, Select> && !std::is_same_v<C, Chosen>) {
    return inner_loop_of<Chosen, F, In...>();  // a choice does not depend on the sign
  }
  return has_wide_vectors() ? wide_loop<C, F, sizeof...(In)> : plain_loop<C, F, sizeof...(In)>;
}

/// Which compute types a function is compiled for. Narrow: for the types of with_narrow() too, so
/// that a vector holds as many elements as it can. For integers of any width it must give, after
/// conversion to their type, what it gives for the same numbers in int64_t.
enum class Kinds { All, AllAndNarrow, Int, IntAndNarrow, Float };

/// Runs `f` in the operands' common type. Returns false if that is not narrow.
template <Kinds kinds, class F, class... In>
bool run_if_narrow(const Pass& pass, const F& f) {
  if constexpr (kinds == Kinds::AllAndNarrow || kinds == Kinds::IntAndNarrow) {
    return (pass.to_bool || pass.out_type == pass.common) && with_narrow(pass.common, [&](auto t) {
             run_narrow(pass, inner_loop_of<decltype(t), F, In...>(), &f);
           });
  }
  return false;
}

/// out = f(inputs...), element by element. `f` takes and returns C for C in int64_t, float and
/// double (as `kinds` says), or returns bool where rules.to_bool.
template <Kinds kinds = Kinds::All, class F, class... In>
Tensor& elementwise(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out, const F& f,
                    const In&... inputs) {
  Pass pass;
  if (!prepare(ctx, rules, out, {Operand(inputs)...}, pass)) return out;
  if (run_if_narrow<kinds, F, In...>(pass, f)) return out;
  if constexpr (kinds == Kinds::Int || kinds == Kinds::IntAndNarrow) {
    run(pass, inner_loop_of<int64_t, F, In...>(), &f);
  } else if constexpr (kinds == Kinds::Float) {
    with_float_compute(pass.compute,
                       [&](auto tag) { run(pass, inner_loop_of<decltype(tag), F, In...>(), &f); });
  } else {
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
  run_narrow(pass, inner_loop_of<bool, F, In...>(), &f);
  return out;
}

/// The same, in float by a function of the engine's, which is handed `engine_function`. If `f` is an
/// InnerLoop, it runs in double and is handed the same.
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
  if (run_if_narrow<kinds, F, In...>(pass, f)) return out;
  if constexpr (kinds != Kinds::Float && computes_in<int64_t>()) {
    if (pass.compute == Compute::Int) {
      run(pass, inner_loop_of<int64_t, F, In...>(), &f);
      return out;
    }
  }
  if constexpr (computes_in<double>()) {
    if constexpr (std::is_same_v<F, InnerLoop>) {
      run(pass, f, engine_function);
    } else {
      run(pass, inner_loop_of<double, F, In...>(), &f);
    }
  }
  return out;
}

}  // namespace torch::executor::native::internal
