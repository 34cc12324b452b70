/// Operators of one operand.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/complex.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/kernels/portable/internal/number.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace torch::executor::native {

using namespace internal;
using executorch::cpu::Activation;

namespace {

constexpr Rules float_rules(const char* op) {
  return {.op = op, .int_to_float = true, .steps = 2};
}
constexpr Rules activation_rules(const char* op) {
  return {.op = op, .allow_bool = false, .allow_int = false, .exact_out = true, .steps = 2};
}

/// A function of floats; integers are taken as Float.
template <class F>
Tensor& of_floats(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                  const F& f) {
  return elementwise<Kinds::Float>(ctx, float_rules(op), out, f, self);
}

/// A function that rounds: integers are already round, and Bool is refused.
template <class F>
Tensor& rounding(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                 const F& f) {
  return elementwise(
      ctx, {.op = op, .allow_bool = false}, out,
      [f](auto x) {
        if constexpr (kIsInt<decltype(x)>) {
          return x;
        } else {
          return f(x);
        }
      },
      self);
}

/// An activation, which is defined for floating types only.
template <class F>
Tensor& activation(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                   const F& f) {
  return elementwise<Kinds::Float>(ctx, activation_rules(op), out, f, self);
}

/// An activation of the engine's, which is `f` in double.
template <class F>
Tensor& activation(KernelRuntimeContext& ctx, const Rules& rules, const Tensor& self, Tensor& out,
                   const Activation& in_float, const F& f) {
  return elementwise_with(ctx, rules, out, activation_loop, &in_float, f, self);
}

/// The type in which activations of elements of `type` are computed, and their parameters with it.
constexpr ScalarType opmath_of(ScalarType type) {
  return type == ScalarType::Double ? type : ScalarType::Float;
}

/// `value` without its fraction, clamped to the range of C; 0 for NaN.
template <class C>
C nearest(double value) {
  constexpr C kLeast = std::numeric_limits<C>::min(), kMost = std::numeric_limits<C>::max();
  if (value >= static_cast<double>(kMost)) return kMost;
  if (value <= static_cast<double>(kLeast)) return kLeast;
  return value == value ? static_cast<C>(value) : C{0};
}

/// min(max(self, low), high); NaN stays. The bounds are of integers too where `self` is.
Tensor& clamped(KernelRuntimeContext& ctx, const char* op, const Tensor& self, double low,
                double high, Tensor& out) {
  const Rules rules{.op = op, .allow_bool = false, .exact_out = true};
  const auto clamp = [=](auto x) {
    using C = decltype(x);
    if constexpr (kIsInt<C>) {
      return std::min(std::max(x, nearest<C>(low)), nearest<C>(high));
    } else {
      return min_or_nan(max_or_nan(x, static_cast<C>(low)), static_cast<C>(high));
    }
  };
  if (!is_float(self.scalar_type())) {
    return elementwise<Kinds::IntAndNarrow>(ctx, rules, out, clamp, self);
  }
  const Activation in_float = {Activation::Kind::Clamp, static_cast<float>(low),
                               static_cast<float>(high)};
  return activation(ctx, rules, self, out, in_float, clamp);
}

/// A function of the engine's.
template <executorch::cpu::Function function>
Tensor& by_engine(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out) {
  const InnerLoop in_double = [](const void* const* in, void* to, int64_t n, const void*) {
    executorch::cpu::apply(function, static_cast<const double*>(in[0]), static_cast<double*>(to),
                           n);
  };
  return elementwise_with(ctx, float_rules(op), out, function_loop<function>, nullptr, in_double,
                          self);
}

/// The InnerLoop that applies *activation in double.
void activation_of_doubles(const void* const* in, void* out, int64_t n, const void* activation) {
  executorch::cpu::apply(static_cast<const Activation*>(activation)->kind,
                         static_cast<const double*>(in[0]), static_cast<double*>(out), n);
}

}  // namespace

Tensor& reciprocal_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "reciprocal.out", self, out, [](auto x) { return 1 / x; });
}

#define ET_ROW(name, op)                                                         \
  Tensor& op##_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) { \
    namespace cpu = executorch::cpu;                                             \
    return by_engine<cpu::Function::name>(ctx, #op ".out", self, out);           \
  }
ET_FUNCTIONS(ET_ROW)
#undef ET_ROW

Tensor& tanh_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return activation(ctx, float_rules("tanh.out"), self, out, {Activation::Kind::Tanh},
                    InnerLoop{activation_of_doubles});
}

Tensor& sigmoid_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return activation(ctx, float_rules("sigmoid.out"), self, out, {Activation::Kind::Sigmoid},
                    InnerLoop{activation_of_doubles});
}

#define ET_ROUNDING_OP(name, expression)                                              \
  Tensor& name##_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {    \
    return rounding(ctx, #name ".out", self, out, [](auto x) { return expression; }); \
  }
ET_ROUNDING_OP(floor, std::floor(x))
ET_ROUNDING_OP(ceil, std::ceil(x))
ET_ROUNDING_OP(round, std::nearbyint(x))  // half to even
ET_ROUNDING_OP(trunc, std::trunc(x))
#undef ET_ROUNDING_OP

Tensor& abs_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  if (is_complex(self.scalar_type())) return complex_abs(ctx, self, out);
  return elementwise<Kinds::AllAndNarrow>(
      ctx, {.op = "abs.out", .allow_bool = false}, out,
      [](auto x) {
        using C = decltype(x);
        if constexpr (kIsInt<C>) {
          return x > 0 ? x : wrapping_sub(C{0}, x);
        } else {
          return std::fabs(x);
        }
      },
      self);
}

Tensor& neg_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  if (is_complex(self.scalar_type())) return complex_neg(ctx, self, out);
  return elementwise<Kinds::AllAndNarrow>(
      ctx, {.op = "neg.out", .allow_bool = false}, out,
      [](auto x) {
        using C = decltype(x);
        if constexpr (kIsInt<C>) {
          return wrapping_sub(C{0}, x);
        } else {
          return -x;
        }
      },
      self);
}

Tensor& sign_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return elementwise(
      ctx, {.op = "sign.out"}, out,
      [](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); }, self);
}

Tensor& relu_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return clamped(ctx, "relu.out", self, 0, INFINITY, out);
}

Tensor& gelu_out(KernelRuntimeContext& ctx, const Tensor& self, std::string_view approximate,
                 Tensor& out) {
  constexpr const char* kOp = "gelu.out";
  if (approximate == "none") {
    return activation(ctx, activation_rules(kOp), self, out, {Activation::Kind::Gelu},
                      InnerLoop{activation_of_doubles});
  }
  ET_REQUIRE(ctx, approximate == "tanh", InvalidArgument, out,
             "%s: approximate is '%.*s', expected 'none' or 'tanh'", kOp,
             static_cast<int>(approximate.size()), approximate.data());
  return activation(ctx, activation_rules(kOp), self, out, {Activation::Kind::GeluTanh},
                    InnerLoop{activation_of_doubles});
}

Tensor& elu_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& alpha,
                const Scalar& scale, const Scalar& input_scale, Tensor& out) {
  constexpr const char* kOp = "elu.out";
  const ScalarType type = opmath_of(self.scalar_type());
  if (!require_fits(ctx, kOp, "alpha", alpha, type) ||
      !require_fits(ctx, kOp, "scale", scale, type) ||
      !require_fits(ctx, kOp, "input_scale", input_scale, type)) {
    return out;
  }
  const double positive = scalar_as<double>(scale);
  const double negative = scalar_as<double>(alpha) * positive;
  const double inner = scalar_as<double>(input_scale);
  const executorch::cpu::Elu in_float = {static_cast<float>(negative), static_cast<float>(positive),
                                         static_cast<float>(inner)};
  return elementwise_with(
      ctx, activation_rules(kOp), out, elu_loop, &in_float,
      [=](double x) { return x <= 0 ? std::expm1(x * inner) * negative : x * positive; }, self);
}

Tensor& leaky_relu_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& negative_slope,
                       Tensor& out) {
  constexpr const char* kOp = "leaky_relu.out";
  if (!require_fits(ctx, kOp, "negative_slope", negative_slope, opmath_of(self.scalar_type()))) {
    return out;
  }
  const double slope = scalar_as<double>(negative_slope);
  return activation(ctx, kOp, self, out,
                    [=](auto x) { return x > 0 ? x : x * static_cast<decltype(x)>(slope); });
}

Tensor& hardtanh_out(KernelRuntimeContext& ctx, const Tensor& self, const Scalar& min_val,
                     const Scalar& max_val, Tensor& out) {
  constexpr const char* kOp = "hardtanh.out";
  const ScalarType type = self.scalar_type();
  const double low = scalar_as<double>(min_val), high = scalar_as<double>(max_val);
  ET_REQUIRE(ctx, !is_unsigned(type) || (low >= 0 && high >= 0), InvalidArgument, out,
             "%s: the limits %g and %g of the unsigned type %s must not be negative", kOp, low,
             high, toString(type));
  if (!require_fits(ctx, kOp, "min_val", min_val, type) ||
      !require_fits(ctx, kOp, "max_val", max_val, type)) {
    return out;
  }
  return clamped(ctx, kOp, self, low, high, out);
}

Tensor& logit_out(KernelRuntimeContext& ctx, const Tensor& self, std::optional<double> eps,
                  Tensor& out) {
  if (!eps.has_value()) {
    return of_floats(ctx, "logit.out", self, out, [](auto x) { return std::log(x / (1 - x)); });
  }
  return of_floats(ctx, "logit.out", self, out, [lo = *eps](auto x) {
    using C = decltype(x);
    const C y = x < static_cast<C>(lo)       ? static_cast<C>(lo)
                : x > static_cast<C>(1 - lo) ? static_cast<C>(1 - lo)
                                             : x;
    return std::log(y / (1 - y));
  });
}

Tensor& _conj_physical_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  constexpr const char* kOp = "_conj_physical.out";
  const ScalarType type = self.scalar_type();
  ET_REQUIRE(ctx, type == out.scalar_type(), InvalidArgument, out, "%s: self is %s but out is %s",
             kOp, toString(type), toString(out.scalar_type()));
  if (!resize_out(ctx, kOp, out, self.sizes())) return out;
  copy_layout(self.const_data_ptr(), type, Layout(self), out.mutable_data_ptr(), type, Layout(out));
  const auto negate_imaginary = [&](auto* parts) {
    for (ssize_t i = 0; i < out.numel(); ++i) parts[2 * i + 1] = -parts[2 * i + 1];
  };
  if (type == ScalarType::ComplexHalf) {
    negate_imaginary(static_cast<Half*>(out.mutable_data_ptr()));
  } else if (type == ScalarType::ComplexFloat) {
    negate_imaginary(static_cast<float*>(out.mutable_data_ptr()));
  } else if (type == ScalarType::ComplexDouble) {
    negate_imaginary(static_cast<double*>(out.mutable_data_ptr()));
  }
  return out;
}

namespace {

constexpr Kernel kUnaryOps[] = {
    ET_OP("aten::abs.out", abs_out),
    ET_OP("aten::acos.out", acos_out),
    ET_OP("aten::acosh.out", acosh_out),
    ET_OP("aten::asin.out", asin_out),
    ET_OP("aten::asinh.out", asinh_out),
    ET_OP("aten::atan.out", atan_out),
    ET_OP("aten::atanh.out", atanh_out),
    ET_OP("aten::ceil.out", ceil_out),
    ET_OP("aten::_conj_physical.out", _conj_physical_out, other),
    ET_OP("aten::cos.out", cos_out),
    ET_OP("aten::cosh.out", cosh_out),
    ET_OP("aten::elu.out", elu_out),
    ET_OP("aten::erf.out", erf_out),
    ET_OP("aten::exp.out", exp_out),
    ET_OP("aten::expm1.out", expm1_out),
    ET_OP("aten::floor.out", floor_out),
    ET_OP("aten::gelu.out", gelu_out),
    ET_OP("aten::hardtanh.out", hardtanh_out),
    ET_OP("aten::leaky_relu.out", leaky_relu_out),
    ET_OP("aten::log.out", log_out),
    ET_OP("aten::log10.out", log10_out),
    ET_OP("aten::log1p.out", log1p_out),
    ET_OP("aten::log2.out", log2_out),
    ET_OP("aten::logit.out", logit_out),
    ET_OP("aten::neg.out", neg_out),
    ET_OP("aten::reciprocal.out", reciprocal_out),
    ET_OP("aten::relu.out", relu_out),
    ET_OP("aten::round.out", round_out),
    ET_OP("aten::rsqrt.out", rsqrt_out),
    ET_OP("aten::sigmoid.out", sigmoid_out),
    ET_OP("aten::sign.out", sign_out),
    ET_OP("aten::sin.out", sin_out),
    ET_OP("aten::sinh.out", sinh_out),
    ET_OP("aten::sqrt.out", sqrt_out),
    ET_OP("aten::tan.out", tan_out),
    ET_OP("aten::tanh.out", tanh_out),
    ET_OP("aten::trunc.out", trunc_out),
};

}  // namespace

Span<const Kernel> unary_ops() {
  return kUnaryOps;
}

}  // namespace torch::executor::native
