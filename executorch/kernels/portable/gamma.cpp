#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/elementwise.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <cinttypes>
#include <cmath>

// The derivatives of the logarithm of the gamma function, the incomplete gamma functions, Hurwitz'
// zeta function, Bessel functions and the normal distribution's quantiles. All in double.
namespace torch::executor::native {

using namespace internal;

namespace {

constexpr double kPi = 3.14159265358979323846;

double log_gamma(double x) {
  int sign;  // lgamma would write a global
  return lgamma_r(x, &sign);
}

// The coefficients B_2k / (2k) of the asymptotic series of digamma; B are Bernoulli numbers.
constexpr double kDigammaSeries[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12};

double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  double result = 0;
  if (x < 0) {
    double whole;
    const double fraction = std::modf(x, &whole);
    if (fraction == 0) return NAN;
    result = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double y = 1 / (x * x);
  double power = y, series = 0;
  for (double c : kDigammaSeries) {
    series += c * power;
    power *= y;
  }
  return result + std::log(x) - 0.5 / x - series;
}

// The coefficients B_2k / (2k)! of the Euler-Maclaurin formula.
constexpr double kEulerMaclaurin[] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160.0,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0,
                                      43867.0 / 5109094217170944000.0};

/// The sum over k >= 0 of (q + k)^-x for x > 1. The first terms, up to q + k = 9 or so, are added
/// up; the Euler-Maclaurin formula gives the sum of the others.
double zeta_from(double x, double q) {
  double sum = 0, a = q;
  for (int i = 0; i < 40 && (i < 9 || a <= 9); ++i, a += 1) sum += std::pow(a, -x);
  const double last = std::pow(a, -x);
  sum += last * a / (x - 1) + last / 2;
  double factor = x, power = last / a;
  for (int k = 0; k < 9; ++k) {
    sum += kEulerMaclaurin[k] * factor * power;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}

double zeta(double x, double q) {
  if (x == 1) return INFINITY;
  if (!(x > 1) || q != q) return NAN;
  if (q > -20) {
    if (q <= 0 && q == std::floor(q)) return INFINITY;
    if (q <= 0 && x != std::floor(x)) return NAN;
    return zeta_from(x, q);
  }
  if (q == std::floor(q)) return INFINITY;
  if (x != std::floor(x)) return NAN;
  // Adding up all terms from q on would take too long. x is an integer here, so those of the
  // negative q + k below -10 or so are, but for their sign, the terms of their absolute values.
  const double last = -q, first = 10 + (last - std::floor(last));
  const double sum = zeta_from(x, first) - zeta_from(x, last + 1);
  return (std::fmod(x, 2) == 0 ? sum : -sum) + zeta_from(x, 1 - first);
}

double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  const double order = static_cast<double>(n) + 1;
  return (n % 2 != 0 ? 1 : -1) * std::exp(log_gamma(order)) * zeta(order, x);
}

/// incomplete_gamma() for a large `a` and an x near it, by the first terms of Temme's uniform
/// expansion (DLMF 8.12): erfc(y sqrt(a / 2)) / 2, where y^2 / 2 = x / a - 1 - log(x / a), and a
/// correction of the relative order 1 / a.
double incomplete_gamma_near(double a, double x, bool above) {
  const double m = (x - a) / a;
  const double half_square = m - std::log1p(m);
  const double y = std::copysign(std::sqrt(2 * std::fmax(half_square, 0.0)), m);
  double c0 = -1.0 / 3 + y * (1.0 / 12 - y * (2.0 / 135 - y * (1.0 / 864 + y / 2835)));
  double c1 = -1.0 / 540 - y * (1.0 / 288 - y / 378);
  if (std::fabs(m) > 0.05) {
    c0 = 1 / m - 1 / y;
    c1 = 1 / (y * y * y) - 1 / (m * m * m) - 1 / (m * m) - 1 / (12 * m);
  }
  const double rest = std::exp(-a * half_square) / std::sqrt(2 * kPi * a) * (c0 + c1 / a);
  return above ? std::erfc(y * std::sqrt(a / 2)) / 2 + rest
               : std::erfc(-y * std::sqrt(a / 2)) / 2 - rest;
}

/// The regularized incomplete gamma function: the share of the integral of t^(a-1) exp(-t) over
/// t >= 0 that lies below x (P(a, x)), or above x if `above` (Q(a, x)).
double incomplete_gamma(double a, double x, bool above) {
  if (!(a >= 0) || !(x >= 0)) return NAN;
  if (a == 0) return x > 0 ? (above ? 0 : 1) : NAN;
  if (x == 0 || std::isinf(a)) return std::isinf(x) ? NAN : above ? 1 : 0;
  if (std::isinf(x)) return above ? 0 : 1;
  // The series and the fraction below converge more slowly the nearer x is to a, in some sqrt(a)
  // steps.
  if (a > 1e4 && std::fabs(x - a) < 0.3 * a) return incomplete_gamma_near(a, x, above);
  constexpr int kSteps = 2000;
  const double front = std::exp(a * std::log(x) - x - log_gamma(a));
  if (x <= 1 || x <= a) {  // P(a, x) by the series of x^k / (a (a+1) ... (a+k))
    double term = 1 / a, sum = term;
    for (int k = 1; k < kSteps && term > sum * 1e-17; ++k) sum += term *= x / (a + k);
    return above ? 1 - front * sum : front * sum;
  }
  // Q(a, x) by its continued fraction, which Lentz' method evaluates.
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (int k = 1; k < kSteps; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    fraction *= c * d;
    if (std::fabs(c * d - 1) < 1e-16) break;
  }
  return above ? front * fraction : 1 - front * fraction;
}

/// exp(-|x|) I_order(x) for the orders 0 and 1, by the power series or, for |x| >= 20, by the
/// asymptotic series.
double scaled_i(int order, double x) {
  const double y = std::fabs(x);
  double sum = 1, term = 1;
  if (y < 20) {
    for (int k = 1; k < 100 && term > sum * 1e-17; ++k) {
      sum += term *= y * y / 4 / (k * (k + order));
    }
    sum *= std::exp(-y) * (order == 1 ? y / 2 : 1);
  } else {
    for (int k = 1; k < 30; ++k) {
      const double odd = 2 * k - 1;
      const double next = term * (odd * odd - 4 * order) / (8 * y * k);
      if (!(std::fabs(next) < std::fabs(term)) || std::fabs(next) < 1e-17) break;
      sum += term = next;
    }
    sum /= std::sqrt(2 * kPi * y);
  }
  return order == 1 && x < 0 ? -sum : sum;
}

/// exp(x) K_order(x) for x <= 1, by the power series (DLMF 10.31).
double scaled_k_of_small(int order, double x) {
  const double square = x * x / 4, log_half = std::log(x / 2);
  double term = 1, harmonic = -0.57721566490153286061;  // digamma(1)
  double sum = 0;
  for (int k = 0; k < 12; ++k) {  // term = (x / 2)^2k / (k! (k + order)!)
    const double next = harmonic + 1.0 / (k + 1);
    sum += term * (order == 0 ? harmonic - log_half : log_half - (harmonic + next) / 2);
    term *= square / ((k + 1) * (k + 1 + order));
    harmonic = next;
  }
  return std::exp(x) * (order == 0 ? sum : 1 / x + x / 2 * sum);
}

/// The integral of exp(-s^2) f(s) over all s, for an even f without poles nearer to the axis than
/// sqrt(2): by the trapezoidal rule, which is off by exp(-2 pi sqrt(2) / step), below 1e-17.
template <class F>
double integrate_bell(const F& f) {
  constexpr double kStep = 0.22;
  struct Weights {
    double of[29];
    Weights() {
      for (int i = 0; i < 29; ++i) of[i] = std::exp(-(i * kStep) * (i * kStep));
    }
  };
  static const Weights weights;
  double sum = f(0.0) / 2;
  for (int i = 1; i < 29; ++i) sum += weights.of[i] * f(i * kStep);
  return 2 * kStep * sum;
}

/// exp(x) K_order(x): the integral over t of exp(-x u) cosh(order t), where u = cosh t - 1 and
/// s^2 = x u.
double scaled_k(int order, double x) {
  if (x == 0) return INFINITY;
  if (!(x > 0)) return NAN;
  if (x <= 1) return scaled_k_of_small(order, x);
  const double integral = integrate_bell([=](double s) {
    const double u = s * s / x;
    return (order == 1 ? 1 + u : 1) / std::sqrt(u + 2);
  });
  return integral / std::sqrt(x);
}

/// exp(x^2) erfc(x).
double erfcx(double x) {
  if (x < 2) {
    const double square = x * x;
    return std::exp(square) * (1 + std::fma(x, x, -square)) * std::erfc(x);
  }
  const double integral = integrate_bell([=](double s) { return 1 / (1 + s / x * (s / x)); });
  return integral / (kPi * x);
}

/// Where the normal distribution reaches p: a rational estimate and steps of Halley's method.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  const double q = p < 0.5 ? p : 1 - p, t = std::sqrt(-2 * std::log(q));
  double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                     (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  for (int i = 0; i < 4; ++i) {
    const double excess = (std::erfc(x / std::sqrt(2.0)) / 2 - q) * std::sqrt(2 * kPi);
    const double step = excess * std::exp(x * x / 2);
    x += step / (1 - x * step / 2);
  }
  return p < 0.5 ? -x : x;
}

template <class F>
Tensor& map(KernelRuntimeContext& ctx, const char* op, const Tensor& self, Tensor& out,
            const F& f) {
  return elementwise<Kinds::Float>(
      ctx, {.op = op, .int_to_float = true, .steps = kSpecialSteps}, out,
      [f](auto x) { return static_cast<decltype(x)>(f(static_cast<double>(x))); }, self);
}

template <class F>
Tensor& map(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Tensor& other,
            Tensor& out, const F& f) {
  return elementwise<Kinds::Float>(
      ctx, {.op = op, .int_to_float = true, .steps = kSpecialSteps}, out,
      [f](auto x, auto y) {
        return static_cast<decltype(x)>(f(static_cast<double>(x), static_cast<double>(y)));
      },
      self, other);
}

}  // namespace

#define ET_MAP(name, formula)                                                      \
  Tensor& name##_out(KernelRuntimeContext& ctx, const Tensor& self, Tensor& out) { \
    return map(ctx, #name ".out", self, out, [](double x) { return formula; });    \
  }
ET_MAP(digamma, digamma(x))
ET_MAP(i0, scaled_i(0, x) * std::exp(std::fabs(x)))
ET_MAP(special_i0e, scaled_i(0, x))
ET_MAP(special_i1, scaled_i(1, x) * std::exp(std::fabs(x)))
ET_MAP(special_i1e, scaled_i(1, x))
ET_MAP(special_modified_bessel_i0, scaled_i(0, x) * std::exp(std::fabs(x)))
ET_MAP(special_modified_bessel_i1, scaled_i(1, x) * std::exp(std::fabs(x)))
ET_MAP(special_modified_bessel_k0, scaled_k(0, x) * std::exp(-x))
ET_MAP(special_modified_bessel_k1, scaled_k(1, x) * std::exp(-x))
ET_MAP(special_scaled_modified_bessel_k0, scaled_k(0, x))
ET_MAP(special_scaled_modified_bessel_k1, scaled_k(1, x))
ET_MAP(special_bessel_j0, ::j0(x))
ET_MAP(special_bessel_j1, ::j1(x))
ET_MAP(special_bessel_y0, ::y0(x))
ET_MAP(special_bessel_y1, ::y1(x))
ET_MAP(special_spherical_bessel_j0, std::isinf(x) ? 0 : x == 0 ? 1 : std::sin(x) / x)
ET_MAP(special_erfcx, erfcx(x))
ET_MAP(special_ndtri, ndtri(x))
#undef ET_MAP

Tensor& polygamma_out(KernelRuntimeContext& ctx, int64_t n, const Tensor& self, Tensor& out) {
  ET_REQUIRE(ctx, n >= 0, InvalidArgument, out, "polygamma.out: n is %" PRId64 ", expected n >= 0",
             n);
  return map(ctx, "polygamma.out", self, out, [n](double x) { return polygamma(n, x); });
}
Tensor& igamma_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                   Tensor& out) {
  return map(ctx, "igamma.out", self, other, out,
             [](double a, double x) { return incomplete_gamma(a, x, false); });
}
Tensor& igammac_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                    Tensor& out) {
  return map(ctx, "igammac.out", self, other, out,
             [](double a, double x) { return incomplete_gamma(a, x, true); });
}
Tensor& special_zeta_out(KernelRuntimeContext& ctx, const Tensor& self, const Tensor& other,
                         Tensor& out) {
  return map(ctx, "special_zeta.out", self, other, out, zeta);
}

namespace {
constexpr Kernel kGammaOps[] = {
    ET_OP("aten::digamma.out", digamma_out),
    ET_OP("aten::i0.out", i0_out),
    ET_OP("aten::igamma.out", igamma_out),
    ET_OP("aten::igammac.out", igammac_out),
    ET_OP("aten::polygamma.out", polygamma_out),
    ET_OP("aten::special_bessel_j0.out", special_bessel_j0_out),
    ET_OP("aten::special_bessel_j1.out", special_bessel_j1_out),
    ET_OP("aten::special_bessel_y0.out", special_bessel_y0_out),
    ET_OP("aten::special_bessel_y1.out", special_bessel_y1_out),
    ET_OP("aten::special_erfcx.out", special_erfcx_out),
    ET_OP("aten::special_i0e.out", special_i0e_out),
    ET_OP("aten::special_i1.out", special_i1_out),
    ET_OP("aten::special_i1e.out", special_i1e_out),
    ET_OP("aten::special_modified_bessel_i0.out", special_modified_bessel_i0_out),
    ET_OP("aten::special_modified_bessel_i1.out", special_modified_bessel_i1_out),
    ET_OP("aten::special_modified_bessel_k0.out", special_modified_bessel_k0_out),
    ET_OP("aten::special_modified_bessel_k1.out", special_modified_bessel_k1_out),
    ET_OP("aten::special_ndtri.out", special_ndtri_out),
    ET_OP("aten::special_scaled_modified_bessel_k0.out", special_scaled_modified_bessel_k0_out),
    ET_OP("aten::special_scaled_modified_bessel_k1.out", special_scaled_modified_bessel_k1_out),
    ET_OP("aten::special_spherical_bessel_j0.out", special_spherical_bessel_j0_out),
    ET_OP("aten::special_zeta.out", special_zeta_out),
};
}  // namespace

Span<const Kernel> gamma_ops() {
  return kGammaOps;
}

}  // namespace torch::executor::native
