/// Functions of one or two numbers beyond core ATen's.
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/arithmetic.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cmath>

namespace torch::executor::native {

using namespace internal;

namespace {

/// The inverse of erf: Winitzki's estimate and steps of Halley's method.
template <class C>
C erfinv(C y) {
  if (!(y >= -1 && y <= 1)) return static_cast<C>(NAN);
  if (y == 1 || y == -1) return y * static_cast<C>(INFINITY);
  const double t = static_cast<double>(y), l = std::log1p(-t * t);
  const double a = 4.3307467507997 + l / 2;  // 2 / (pi 0.147)
  double x = std::copysign(std::sqrt(std::sqrt(a * a - l / 0.147) - a), t);
  for (int i = 0; i < 3; ++i) {
    const double step = (std::erf(x) - t) / (1.1283791670955126 * std::exp(-x * x));
    x -= step / (1 + x * step);
  }
  return static_cast<C>(x);
}

int64_t magnitude(int64_t a) {
  return a < 0 ? wrapping_sub<int64_t>(0, a) : a;
}

int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = b == -1 ? 0 : a % b;
    a = b;
    b = rest;
  }
  return magnitude(a);
}

/// The number of the 16-bit type H that follows `a`, which is one, in the direction of `b`.
template <class H, class C>
C next_of_16_bits(C a, C b) {
  if (a != a || b != b) return static_cast<C>(NAN);
  if (a == b) return b;
  H next(static_cast<float>(a));
  if (a == 0) {
    next.x = 1;
    return std::copysign(static_cast<C>(static_cast<float>(next)), b);
  }
  next.x = static_cast<uint16_t>(next.x + ((b > a) == (a > 0) ? 1 : -1));
  return static_cast<C>(static_cast<float>(next));
}

template <class F>
Tensor& of_floats(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
                  const F& f) {
  return elementwise<Kinds::Float>(ctx, {.op = op, .int_to_float = true, .steps = kSpecialSteps},
                                   out, f, self);
}

}  // namespace

Tensor& erfc_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "erfc.out", self, out, [](auto x) { return std::erfc(x); });
}
Tensor& erfinv_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "erfinv.out", self, out, [](auto x) { return erfinv(x); });
}
Tensor& exp2_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "exp2.out", self, out, [](auto x) { return std::exp2(x); });
}
Tensor& lgamma_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "lgamma.out", self, out, [](auto x) {
    int sign;  // lgamma would write a global
    if constexpr (sizeof(x) == sizeof(float)) {
      return lgammaf_r(x, &sign);
    } else {
      return lgamma_r(x, &sign);
    }
  });
}
Tensor& angle_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  return of_floats(ctx, "angle.out", self, out, [](auto x) {
    using C = decltype(x);
    return x < 0 ? static_cast<C>(3.14159265358979323846) : x != x ? x : C(0);
  });
}
Tensor& signbit_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) {
  const bool is_signed = !is_unsigned(self.scalar_type());
  return elementwise(
      ctx, {.op = "signbit.out", .to_bool = true}, out,
      [is_signed](auto x) {
        if constexpr (kIsInt<decltype(x)>) {
          return is_signed && x < 0;
        } else {
          return std::signbit(x);
        }
      },
      self);
}
Tensor& round_decimals_out(KernelRuntimeContext& ctx, const Tensor& self, int64_t decimals,
                           Tensor& out) {
  const double scale = std::pow(10.0, std::fabs(static_cast<double>(decimals)));
  return elementwise<Kinds::Float>(
      ctx, {.op = "round.decimals_out", .allow_bool = false, .allow_int = false}, out,
      [scale, decimals](auto x) {
        const auto s = static_cast<decltype(x)>(scale);
        if (decimals == 0) return std::nearbyint(x);
        return decimals < 0 ? std::nearbyint(x / s) * s : std::nearbyint(x * s) / s;
      },
      self);
}

Tensor& copysign_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                     Tensor& out) {
  return elementwise<Kinds::Float>(
      ctx, {.op = "copysign.out", .int_to_float = true}, out,
      [](auto a, auto b) { return std::copysign(a, b); }, self, other);
}
Tensor& hypot_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return elementwise<Kinds::Float>(
      ctx, {.op = "hypot.out", .allow_bool = false, .allow_int = false}, out,
      [](auto a, auto b) { return std::hypot(a, b); }, self, other);
}
Tensor& fmax_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return elementwise(
      ctx, {.op = "fmax.out"}, out, [](auto a, auto b) { return a > b || b != b ? a : b; }, self,
      other);
}
/// The largest integer that divides both numbers; 0 if both are 0.
Tensor& gcd_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return elementwise<Kinds::Int>(
      ctx, {.op = "gcd.out", .allow_bool = false, .allow_float = false}, out,
      [](int64_t a, int64_t b) { return gcd(a, b); }, self, other);
}
Tensor& lcm_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return elementwise<Kinds::Int>(
      ctx, {.op = "lcm.out", .allow_bool = false, .allow_float = false}, out,
      [](int64_t a, int64_t b) {
        const int64_t divisor = gcd(a, b);
        return divisor == 0 ? 0 : magnitude(wrapping_mul(a / divisor, b));
      },
      self, other);
}
Tensor& nextafter_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                      Tensor& out) {
  const Rules rules{.op = "nextafter.out", .allow_bool = false, .allow_int = false};
  const auto with = [&](auto next) -> Tensor& {
    return elementwise<Kinds::Float>(ctx, rules, out, next, self, other);
  };
  if (out.scalar_type() == ScalarType::Half) {
    return with([](auto a, auto b) { return next_of_16_bits<Half>(a, b); });
  }
  if (out.scalar_type() == ScalarType::BFloat16) {
    return with([](auto a, auto b) { return next_of_16_bits<BFloat16>(a, b); });
  }
  return with([](auto a, auto b) { return std::nextafter(a, b); });
}
Tensor& fmin_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other, Tensor& out) {
  return elementwise(
      ctx, {.op = "fmin.out"}, out, [](auto a, auto b) { return a < b || b != b ? a : b; }, self,
      other);
}

namespace {
constexpr Kernel kSpecialOps[] = {
    ET_OP("aten::angle.out", angle_out),     ET_OP("aten::copysign.out", copysign_out),
    ET_OP("aten::erfc.out", erfc_out),       ET_OP("aten::erfinv.out", erfinv_out),
    ET_OP("aten::exp2.out", exp2_out),       ET_OP("aten::fmax.out", fmax_out),
    ET_OP("aten::fmin.out", fmin_out),       ET_OP("aten::hypot.out", hypot_out),
    ET_OP("aten::lgamma.out", lgamma_out),   ET_OP("aten::round.decimals_out", round_decimals_out),
    ET_OP("aten::signbit.out", signbit_out), ET_OP("aten::gcd.out", gcd_out, other),
    ET_OP("aten::lcm.out", lcm_out, other),  ET_OP("aten::nextafter.out", nextafter_out, other),
};
}  // namespace

Span<const Kernel> special_ops() {
  return kSpecialOps;
}

}  // namespace torch::executor::native
