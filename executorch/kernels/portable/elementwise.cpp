/// Arithmetic of two or three operands.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/complex.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/number.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

namespace torch::executor::native {

using namespace internal;

using executorch::cpu::Arithmetic;

namespace {

/// Computes an operation by the engine in float, and by `f` in double and, as `kinds` says, in
/// integers.
template <Kinds kinds, Arithmetic op, class A, class B, class F>
Tensor& arithmetic(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out, const F& f,
                   const A& a, const B& b) {
  return elementwise_with<kinds>(ctx, rules, out, arithmetic_loop<op>, nullptr, f, a, b);
}

/// Whether `alpha` is a number that eager PyTorch multiplies operands of type `common` by.
bool require_alpha(KernelRuntimeContext& ctx, const char* op, const Scalar& alpha, bool subtract,
                   ScalarType common) {
  ET_REQUIRE(ctx, is_float(common) || alpha.isIntegral(true), InvalidArgument, false,
             "%s: alpha is a float while the operands are integers (%s)", op, toString(common));
  ET_REQUIRE(ctx, !alpha.isBoolean() || common == ScalarType::Bool, InvalidArgument, false,
             "%s: alpha is a Bool while the operands are %s", op, toString(common));
  if (!subtract) return require_fits(ctx, op, "alpha", alpha, common);
  if (is_float(common)) {
    return require_fits(ctx, op, "-alpha", Scalar(-scalar_as<double>(alpha)), common);
  }
  const int64_t negated = wrapping_sub<int64_t>(0, scalar_as<int64_t>(alpha));
  return require_fits(ctx, op, "-alpha", Scalar(negated), common);
}

constexpr auto kAdd = [](auto x, auto y) { return wrapping_add(x, y); };
constexpr auto kSubtract = [](auto x, auto y) { return wrapping_sub(x, y); };
struct AddScaled {
  double scale;
  int64_t int_scale;
  template <class C>
  C operator()(C x, C y) const {
    return wrapping_add(
        x, wrapping_mul(kIsInt<C> ? static_cast<C>(int_scale) : static_cast<C>(scale), y));
  }
};

/// a + alpha * b, or a - alpha * b.
template <class A, class B>
Tensor& add_scaled(KernelRuntimeContext& ctx, const Rules& rules, const A& a, const B& b,
                   const Scalar& alpha, bool subtract, Tensor& out) {
  const ScalarType common = Promotion().add(a).add(b).result();
  if (!require_alpha(ctx, rules.op, alpha, subtract, common)) return out;
  if (scalar_as<double>(alpha) == 1.0) {
    if (subtract) {
      return arithmetic<Kinds::AllAndNarrow, Arithmetic::Subtract>(ctx, rules, out, kSubtract, a,
                                                                   b);
    }
    return arithmetic<Kinds::AllAndNarrow, Arithmetic::Add>(ctx, rules, out, kAdd, a, b);
  }
  const double scale = scalar_as<double>(alpha);
  const int64_t int_scale = common == ScalarType::Bool ? scale != 0 : scalar_as<int64_t>(alpha);
  const AddScaled f = subtract ? AddScaled{-scale, wrapping_sub<int64_t>(0, int_scale)}
                               : AddScaled{scale, int_scale};
  return elementwise<Kinds::AllAndNarrow>(ctx, rules, out, f, a, b);
}

/// An operation that divides integers, so that a divisor may be zero.
template <Arithmetic engine_op, class A, class B, class F>
Tensor& dividing(KernelRuntimeContext& ctx, const char* op, const A& a, const B& b, Tensor& out,
                 F f) {
  bool by_zero = false;
  arithmetic<Kinds::All, engine_op>(
      ctx, {.op = op, .allow_bool = false}, out,
      [f, zero = &by_zero](auto x, auto y) { return f(x, y, zero); }, a, b);
  ET_REQUIRE(ctx, !by_zero, InvalidArgument, out, "%s: an integer is divided by zero", op);
  return out;
}

template <class B>
Tensor& divide(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const B& b,
               std::optional<std::string_view> rounding_mode, Tensor& out) {
  if (!rounding_mode.has_value()) {
    return arithmetic<Kinds::Float, Arithmetic::Divide>(
        ctx, {.op = op, .int_to_float = true}, out, [](auto x, auto y) { return x / y; }, a, b);
  }
  if (*rounding_mode == "trunc") {
    return dividing<Arithmetic::TruncDivide>(
        ctx, op, a, b, out, [](auto x, auto y, bool* zero) { return trunc_div(x, y, zero); });
  }
  ET_REQUIRE(ctx, *rounding_mode == "floor", InvalidArgument, out,
             "%s: rounding_mode is '%.*s', expected None, 'trunc' or 'floor'", op,
             static_cast<int>(rounding_mode->size()), rounding_mode->data());
  return dividing<Arithmetic::FloorDivide>(
      ctx, op, a, b, out, [](auto x, auto y, bool* zero) { return floor_div(x, y, zero); });
}

template <class B>
Tensor& remainder(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const B& b,
                  Tensor& out) {
  return dividing<Arithmetic::FloorModulo>(
      ctx, op, a, b, out, [](auto x, auto y, bool* zero) { return floor_mod(x, y, zero); });
}

template <class B>
Tensor& fmod(KernelRuntimeContext& ctx, const char* op, const Tensor& a, const B& b, Tensor& out) {
  return dividing<Arithmetic::TruncModulo>(
      ctx, op, a, b, out, [](auto x, auto y, bool* zero) { return trunc_mod(x, y, zero); });
}

constexpr auto kMultiply = [](auto x, auto y) { return wrapping_mul(x, y); };
constexpr auto kMaximum = [](auto x, auto y) { return max_or_nan(x, y); };
constexpr auto kMinimum = [](auto x, auto y) { return min_or_nan(x, y); };
constexpr int64_t kPowerSteps = 4;
constexpr auto kPower = [](auto x, auto y) { return power(x, y); };
constexpr auto kClamp = [](auto x, auto lo, auto hi) { return min_or_nan(max_or_nan(x, lo), hi); };

template <class Bound>
Tensor& clamp(KernelRuntimeContext& ctx, const char* op, const Tensor& self,
              const std::optional<Bound>& min, const std::optional<Bound>& max, Tensor& out) {
  const Rules rules{.op = op, .exact_out = std::is_same_v<Bound, Scalar>};
  if constexpr (std::is_same_v<Bound, Scalar>) {
    Promotion promotion;
    promotion.add(self);
    if (min.has_value()) promotion.add(*min);
    if (max.has_value()) promotion.add(*max);
    const ScalarType common = promotion.result();
    if ((min.has_value() && !require_fits(ctx, op, "min", *min, common)) ||
        (max.has_value() && !require_fits(ctx, op, "max", *max, common))) {
      return out;
    }
    const double low = min.has_value() ? scalar_as<double>(*min) : -INFINITY;
    const double high = max.has_value() ? scalar_as<double>(*max) : INFINITY;
    // The engine's clamp does not handle bounds that are NaN.
    if (is_float(self.scalar_type()) && low == low && high == high &&
        (min.has_value() || max.has_value())) {
      const executorch::cpu::Activation in_float = {executorch::cpu::Activation::Kind::Clamp,
                                                    static_cast<float>(low),
                                                    static_cast<float>(high)};
      return elementwise_with(
          ctx, rules, out, activation_loop, &in_float,
          [=](double x) { return min_or_nan(max_or_nan(x, low), high); }, self);
    }
  }
  if (min.has_value() && max.has_value()) {
    return elementwise<Kinds::AllAndNarrow>(ctx, rules, out, kClamp, self, *min, *max);
  }
  if (min.has_value()) {
    return elementwise<Kinds::AllAndNarrow>(ctx, rules, out, kMaximum, self, *min);
  }
  ET_REQUIRE(ctx, max.has_value(), InvalidArgument, out,
             "%s: both min and max are None; at least one is needed", op);
  return elementwise<Kinds::AllAndNarrow>(ctx, rules, out, kMinimum, self, *max);
}

/// `value` as a number of the category of `type`, so that it does not take part in promotion: a
/// fraction is dropped where `type` is an integer, and the rest must fit.
bool value_for(KernelRuntimeContext& ctx, const char* op, ScalarType type, const Scalar& value,
               Scalar& result) {
  if (!require_fits(ctx, op, "value", value, type)) return false;
  const double d = scalar_as<double>(value);
  if (type == ScalarType::Bool) {
    result = Scalar(d != 0);
  } else if (is_float(type)) {
    result = Scalar(d);
  } else {
    result = Scalar(scalar_as<int64_t>(value));
  }
  return true;
}

}  // namespace

Tensor& add_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                const Scalar& alpha, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "add.out", ComplexOp::Add, self, other, scalar_as<double>(alpha),
                              out);
  }
  return add_scaled(ctx, {.op = "add.out"}, self, other, alpha, false, out);
}

Tensor& add_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                       const Scalar& alpha, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "add.Scalar_out", ComplexOp::Add, self, other,
                              scalar_as<double>(alpha), out);
  }
  return add_scaled(ctx, {.op = "add.Scalar_out"}, self, other, alpha, false, out);
}

Tensor& sub_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                const Scalar& alpha, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "sub.out", ComplexOp::Add, self, other,
                              -scalar_as<double>(alpha), out);
  }
  return add_scaled(ctx, {.op = "sub.out", .allow_bool = false}, self, other, alpha, true, out);
}

Tensor& sub_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                       const Scalar& alpha, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "sub.Scalar_out", ComplexOp::Add, self, other,
                              -scalar_as<double>(alpha), out);
  }
  return add_scaled(ctx, {.op = "sub.Scalar_out", .allow_bool = false}, self, other, alpha, true,
                    out);
}

Tensor& rsub_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                        const Scalar& alpha, Tensor& out) {
  return add_scaled(ctx, {.op = "rsub.Scalar_out", .allow_bool = false, .exact_out = true}, other,
                    self, alpha, true, out);
}

Tensor& mul_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "mul.out", ComplexOp::Multiply, self, other, 1, out);
  }
  return arithmetic<Kinds::AllAndNarrow, Arithmetic::Multiply>(ctx, {.op = "mul.out"}, out,
                                                               kMultiply, self, other);
}

Tensor& mul_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                       Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "mul.Scalar_out", ComplexOp::Multiply, self, other, 1, out);
  }
  return arithmetic<Kinds::AllAndNarrow, Arithmetic::Multiply>(ctx, {.op = "mul.Scalar_out"}, out,
                                                               kMultiply, self, other);
}

Tensor& div_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "div.out", ComplexOp::Divide, self, other, 1, out);
  }
  return divide(ctx, "div.out", self, other, std::nullopt, out);
}

Tensor& div_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                       Tensor& out) {
  if (is_complex(out.scalar_type())) {
    return complex_arithmetic(ctx, "div.Scalar_out", ComplexOp::Divide, self, other, 1, out);
  }
  return divide(ctx, "div.Scalar_out", self, other, std::nullopt, out);
}

Tensor& div_out_mode(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                     std::optional<std::string_view> rounding_mode, Tensor& out) {
  return divide(ctx, "div.out_mode", self, other, rounding_mode, out);
}

Tensor& div_scalar_mode_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                            std::optional<std::string_view> rounding_mode, Tensor& out) {
  return divide(ctx, "div.Scalar_mode_out", self, other, rounding_mode, out);
}

Tensor& floor_divide_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                         Tensor& out) {
  return divide(ctx, "floor_divide.out", self, other, "floor", out);
}

Tensor& remainder_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                             Tensor& out) {
  return remainder(ctx, "remainder.Tensor_out", self, other, out);
}

Tensor& remainder_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                             Tensor& out) {
  return remainder(ctx, "remainder.Scalar_out", self, other, out);
}

Tensor& fmod_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                        Tensor& out) {
  return fmod(ctx, "fmod.Tensor_out", self, other, out);
}

Tensor& fmod_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& other,
                        Tensor& out) {
  return fmod(ctx, "fmod.Scalar_out", self, other, out);
}

Tensor& pow_Tensor_Tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& exponent,
                              Tensor& out) {
  return arithmetic<Kinds::All, Arithmetic::Power>(
      ctx, {.op = "pow.Tensor_Tensor_out", .allow_bool = false, .steps = kPowerSteps}, out, kPower,
      self, exponent);
}

Tensor& pow_Tensor_Scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& exponent,
                              Tensor& out) {
  Rules rules{.op = "pow.Tensor_Scalar_out", .allow_bool = false};
  const double e = scalar_as<double>(exponent);
  const ScalarType common = Promotion().add(self).add(exponent).result();
  ET_REQUIRE(ctx, is_float(common) || e >= 0, InvalidArgument, out,
             "%s: integers cannot be raised to the negative power %g", rules.op, e);
  if (!require_fits(ctx, rules.op, "exponent", exponent, common)) return out;
  if (!is_float(common) || (e != 2 && e != 3 && e != 0.5)) {
    rules.steps = kPowerSteps;
    return arithmetic<Kinds::All, Arithmetic::Power>(ctx, rules, out, kPower, self, exponent);
  }
  const auto with = [&](const auto& f) -> Tensor& {
    return elementwise<Kinds::Float>(ctx, rules, out, f, self, exponent);
  };
  if (e == 2) return with([](auto x, auto) { return x * x; });
  if (e == 3) return with([](auto x, auto) { return x * x * x; });
  return with([](auto x, auto) { return std::sqrt(x); });
}

Tensor& pow_Scalar_out(KernelRuntimeContext& ctx, const Scalar& self, const Tensor& exponent,
                       Tensor& out) {
  return arithmetic<Kinds::All, Arithmetic::Power>(
      ctx, {.op = "pow.Scalar_out", .allow_bool = false, .steps = kPowerSteps}, out, kPower, self,
      exponent);
}

Tensor& maximum_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                    Tensor& out) {
  return arithmetic<Kinds::AllAndNarrow, Arithmetic::Maximum>(ctx, {.op = "maximum.out"}, out,
                                                              kMaximum, self, other);
}

Tensor& minimum_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                    Tensor& out) {
  return arithmetic<Kinds::AllAndNarrow, Arithmetic::Minimum>(ctx, {.op = "minimum.out"}, out,
                                                              kMinimum, self, other);
}

Tensor& atan2_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return arithmetic<Kinds::Float, Arithmetic::Atan2>(
      ctx, {.op = "atan2.out", .int_to_float = true}, out,
      [](auto y, auto x) { return std::atan2(y, x); }, self, other);
}

Tensor& clamp_out(KernelRuntimeContext& ctx, const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max, Tensor& out) {
  return clamp(ctx, "clamp.out", self, min, max, out);
}

Tensor& clamp_tensor_out(KernelRuntimeContext& ctx, const Tensor& self,
                         const std::optional<Tensor>& min, const std::optional<Tensor>& max,
                         Tensor& out) {
  return clamp(ctx, "clamp.Tensor_out", self, min, max, out);
}

Tensor& where_out(KernelRuntimeContext& ctx, const Tensor& condition, const Tensor& self,
                  const Tensor& other, Tensor& out) {
  const ScalarType type = condition.scalar_type();
  ET_REQUIRE(ctx, type == ScalarType::Bool || type == ScalarType::Byte, InvalidArgument, out,
             "where.self_out: the condition is %s, expected Bool", toString(type));
  return elementwise<Kinds::AllAndNarrow>(ctx, {.op = "where.self_out", .condition_first = true},
                                          out, Select(), condition, self, other);
}

Tensor& masked_fill_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& mask,
                               const Scalar& value, Tensor& out) {
  constexpr const char* kOp = "masked_fill.Scalar_out";
  ET_REQUIRE(ctx, mask.scalar_type() == ScalarType::Bool, InvalidArgument, out,
             "%s: the mask is %s, expected Bool", kOp, toString(mask.scalar_type()));
  Scalar typed;
  if (!value_for(ctx, kOp, self.scalar_type(), value, typed)) return out;
  return elementwise<Kinds::AllAndNarrow>(ctx,
                                          {.op = kOp, .condition_first = true, .exact_out = true},
                                          out, Select(), mask, typed, self);
}

Tensor& fill_scalar_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& value,
                        Tensor& out) {
  constexpr const char* kOp = "fill.Scalar_out";
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type() && is_real(out.scalar_type()),
             InvalidArgument, out, "%s: self is %s and out is %s; expected one real type", kOp,
             toString(self.scalar_type()), toString(out.scalar_type()));
  Scalar typed;
  if (!value_for(ctx, kOp, out.scalar_type(), value, typed)) return out;
  if (resize_out(ctx, kOp, out, self.sizes())) fill(typed, out);
  return out;
}

Tensor& fill_tensor_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& value,
                        Tensor& out) {
  constexpr const char* kOp = "fill.Tensor_out";
  ET_REQUIRE(ctx, value.dim() == 0 && is_real(value.scalar_type()), InvalidArgument, out,
             "%s: value has shape %s and type %s, expected a real 0-d tensor", kOp,
             ShapeText(value).c_str(), toString(value.scalar_type()));
  const void* data = value.const_data_ptr();
  const ScalarType type = value.scalar_type();
  return fill_scalar_out(
      ctx, self,
      is_float(type) ? Scalar(load_one<double>(data, type)) : Scalar(load_one<int64_t>(data, type)),
      out);
}

namespace {

constexpr Kernel kElementwiseOps[] = {
    ET_OP("aten::add.out", add_out),
    ET_OP("aten::add.Scalar_out", add_scalar_out),
    ET_OP("aten::sub.out", sub_out),
    ET_OP("aten::sub.Scalar_out", sub_scalar_out),
    ET_OP("aten::rsub.Scalar_out", rsub_scalar_out),
    ET_OP("aten::mul.out", mul_out),
    ET_OP("aten::mul.Scalar_out", mul_scalar_out),
    ET_OP("aten::div.out", div_out),
    ET_OP("aten::div.Scalar_out", div_scalar_out),
    ET_OP("aten::div.out_mode", div_out_mode),
    ET_OP("aten::div.Scalar_mode_out", div_scalar_mode_out),
    ET_OP("aten::floor_divide.out", floor_divide_out),
    ET_OP("aten::remainder.Tensor_out", remainder_Tensor_out),
    ET_OP("aten::remainder.Scalar_out", remainder_Scalar_out),
    ET_OP("aten::fmod.Tensor_out", fmod_Tensor_out),
    ET_OP("aten::fmod.Scalar_out", fmod_Scalar_out),
    ET_OP("aten::pow.Tensor_Tensor_out", pow_Tensor_Tensor_out),
    ET_OP("aten::pow.Tensor_Scalar_out", pow_Tensor_Scalar_out),
    ET_OP("aten::pow.Scalar_out", pow_Scalar_out),
    ET_OP("aten::maximum.out", maximum_out),
    ET_OP("aten::minimum.out", minimum_out),
    ET_OP("aten::atan2.out", atan2_out),
    ET_OP("aten::clamp.out", clamp_out),
    ET_OP("aten::clamp.Tensor_out", clamp_tensor_out),
    ET_OP("aten::where.self_out", where_out),
    ET_OP("aten::masked_fill.Scalar_out", masked_fill_scalar_out),
    ET_OP("aten::fill.Scalar_out", fill_scalar_out, copy),
    ET_OP("aten::fill.Tensor_out", fill_tensor_out, copy),
};

}  // namespace

Span<const Kernel> elementwise_ops() {
  return kElementwiseOps;
}

}  // namespace torch::executor::native
