/// Bitwise operators of integers and Bool, and logical ones of anything.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

namespace torch::executor::native {

using namespace internal;

namespace {

bool is_bool(const Tensor& t) {
  return t.scalar_type() == ScalarType::Bool;
}

template <class B, class F>
Tensor& bitwise(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const B& b, Tensor& out,
                const F& f) {
  return elementwise<Kinds::IntAndNarrow>(ctx, {.op = op, .allow_float = false}, out, f, a, b);
}

constexpr auto kNot = [](bool a) { return !a; };

/// A logical operator, computed from whether its operands are zero.
template <class F, class... In>
Tensor& logical(KernelRuntimeContext& ctx, const char* op, Tensor& out, const F& f,
                const In&... inputs) {
  const Rules rules{.op = op, .to_bool = true};
  if ((is_bool(inputs) && ...) && is_bool(out)) {
    return elementwise_in_bool(ctx, rules, out, f, inputs...);
  }
  return elementwise(
      ctx, rules, out, [f](auto... x) { return f((x != 0)...); }, inputs...);
}

template <class B, class F>
Tensor& shift(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const B& b, Tensor& out,
              const F& f) {
  return elementwise<Kinds::Int>(ctx, {.op = op, .allow_bool = false, .allow_float = false}, out, f,
                                 a, b);
}

// Out of [0, 63] everything is shifted out; for narrower types the wrap on store does the rest.
constexpr auto kLeftShift = [](int64_t a, int64_t b) {
  return b < 0 || b > 63 ? int64_t{0} : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
};
constexpr auto kRightShift = [](int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); };

}  // namespace

#define ET_BITWISE(name, operation)                                                             \
  Tensor& name##_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, \
                            Tensor& out) {                                                      \
    return bitwise(ctx, #name ".Tensor_out", self, other, out,                                  \
                   [](auto a, auto b) { return static_cast<decltype(a)>(a operation b); });     \
  }                                                                                             \
  Tensor& name##_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other, \
                            Tensor& out) {                                                      \
    return bitwise(ctx, #name ".Scalar_out", self, other, out,                                  \
                   [](auto a, auto b) { return static_cast<decltype(a)>(a operation b); });     \
  }
ET_BITWISE(bitwise_and, &)
ET_BITWISE(bitwise_or, |)
ET_BITWISE(bitwise_xor, ^)
#undef ET_BITWISE

Tensor& bitwise_left_shift_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                                      const Tensor& other, Tensor& out) {
  return shift(ctx, "bitwise_left_shift.Tensor_out", self, other, out, kLeftShift);
}

Tensor& bitwise_left_shift_Tensor_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self,
                                             const Scalar& other, Tensor& out) {
  return shift(ctx, "bitwise_left_shift.Tensor_Scalar_out", self, other, out, kLeftShift);
}

Tensor& bitwise_right_shift_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                                       const Tensor& other, Tensor& out) {
  return shift(ctx, "bitwise_right_shift.Tensor_out", self, other, out, kRightShift);
}

Tensor& bitwise_right_shift_Tensor_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self,
                                              const Scalar& other, Tensor& out) {
  return shift(ctx, "bitwise_right_shift.Tensor_Scalar_out", self, other, out, kRightShift);
}

Tensor& bitwise_not_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  const Rules rules{.op = "bitwise_not.out", .allow_float = false};
  if (is_bool(self) && is_bool(out)) return elementwise_in_bool(ctx, rules, out, kNot, self);
  if (is_bool(self)) {
    return elementwise<Kinds::Int>(
        ctx, rules, out, [](int64_t a) { return static_cast<int64_t>(a == 0); }, self);
  }
  return elementwise<Kinds::IntAndNarrow>(
      ctx, rules, out,
      [](auto a) { return static_cast<decltype(a)>(a ^ static_cast<decltype(a)>(-1)); }, self);
}

Tensor& logical_not_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return logical(ctx, "logical_not.out", out, kNot, self);
}

#define ET_LOGICAL(name, operation)                                                                \
  Tensor& logical_##name##_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, \
                               Tensor& out) {                                                      \
    return logical(                                                                                \
        ctx, "logical_" #name ".out", out, [](bool a, bool b) { return (a operation b) != 0; },    \
        self, other);                                                                              \
  }
ET_LOGICAL(and, &)
ET_LOGICAL(or, |)
ET_LOGICAL(xor, ^)
#undef ET_LOGICAL

namespace {

constexpr Kernel kBitwiseOps[] = {
    ET_OP("aten::bitwise_and.Tensor_out", bitwise_and_Tensor_out),
    ET_OP("aten::bitwise_and.Scalar_out", bitwise_and_Scalar_out),
    ET_OP("aten::bitwise_or.Tensor_out", bitwise_or_Tensor_out),
    ET_OP("aten::bitwise_or.Scalar_out", bitwise_or_Scalar_out),
    ET_OP("aten::bitwise_xor.Tensor_out", bitwise_xor_Tensor_out),
    ET_OP("aten::bitwise_xor.Scalar_out", bitwise_xor_Scalar_out),
    ET_OP("aten::bitwise_left_shift.Tensor_out", bitwise_left_shift_Tensor_out),
    ET_OP("aten::bitwise_left_shift.Tensor_Scalar_out", bitwise_left_shift_Tensor_Scalar_out),
    ET_OP("aten::bitwise_right_shift.Tensor_out", bitwise_right_shift_Tensor_out),
    ET_OP("aten::bitwise_right_shift.Tensor_Scalar_out", bitwise_right_shift_Tensor_Scalar_out),
    ET_OP("aten::bitwise_not.out", bitwise_not_out),
    ET_OP("aten::logical_and.out", logical_and_out),
    ET_OP("aten::logical_or.out", logical_or_out),
    ET_OP("aten::logical_xor.out", logical_xor_out),
    ET_OP("aten::logical_not.out", logical_not_out),
};

}  // namespace

Span<const Kernel> bitwise_ops() {
  return kBitwiseOps;
}

}  // namespace torch::executor::native
