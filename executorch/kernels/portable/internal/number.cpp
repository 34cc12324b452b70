#include <executorch/kernels/portable/internal/number.h>

#include <executorch/kernels/portable/internal/check.h>

#include <cmath>
#include <limits>

namespace torch::executor::native::internal {
namespace {

double largest_finite(ScalarType type) {
  switch (type) {
    case ScalarType::Half:
      return 65504;
    case ScalarType::BFloat16:
      return 0x1.FEp127;
    case ScalarType::Float:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

/// The number of bits of an integer type that hold magnitudes.
int magnitude_bits(ScalarType type) {
  const int bits = static_cast<int>(elementSize(type)) * 8;
  return is_unsigned(type) ? bits : bits - 1;
}

bool integer_fits(int64_t value, ScalarType type) {
  const int bits = magnitude_bits(type);
  if (bits >= 63) return true;  // Long, and UInt64, where negative numbers wrap
  const int64_t most = (int64_t{1} << bits) - 1;
  if (value >= 0) return value <= most;
  return is_unsigned(type) ? value >= -most : value >= -most - 1;
}

}  // namespace

bool fits(const Scalar& value, ScalarType type) {
  if (type == ScalarType::Bool || value.isBoolean()) return true;
  if (is_float(type)) {
    const double d = scalar_as<double>(value);
    return !std::isfinite(d) || std::fabs(d) <= largest_finite(type);
  }
  if (!is_integer(type)) return true;  // kernels refuse what is neither
  if (value.isIntegral(false)) return integer_fits(scalar_as<int64_t>(value), type);
  const double d = scalar_as<double>(value);
  // Two to the power of the bits is a double; the largest integer, one less, may be rounded to it.
  const double limit = std::ldexp(1.0, magnitude_bits(type));
  return d < limit && d <= limit - 1 && d >= (is_unsigned(type) ? 1 - limit : -limit);
}

bool require_fits(KernelRuntimeContext& ctx, const char* op, const char* argument,
                  const Scalar& value, ScalarType type) {
  ET_REQUIRE(ctx, fits(value, type), InvalidArgument, false,
             "%s: %s is %g, which does not fit elements of type %s", op, argument,
             scalar_as<double>(value), toString(type));
  return true;
}

}  // namespace torch::executor::native::internal
