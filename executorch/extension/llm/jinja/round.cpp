// The filter round.
#include <executorch/extension/llm/jinja/evaluator.h>

#include <charconv>
#include <cmath>

namespace executorch::extension::llm::jinja {
namespace {

// Of whole numbers here; sums with less than that do not overflow.
constexpr double kLargest = 4e18;

/// A multiple of `unit`, the nearest to `whole` and a fraction if `has_fraction`; of two that are
/// equally near, the even one.
int64_t nearest_multiple(int64_t whole, bool has_fraction, int64_t unit) {
  const int64_t quotient = whole / unit;
  const int64_t rest = std::abs(whole % unit), other = unit - rest;
  const bool is_even = quotient % 2 == 0;
  const bool is_up = rest > other || (rest == other && (has_fraction || !is_even));
  return (quotient + (is_up ? (whole < 0 ? -1 : 1) : 0)) * unit;
}

/// 10 to the power of `exponent`, which is from 0 to 18.
int64_t power_of_ten(int64_t exponent) {
  int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

/// Rounds in decimal digits, of which the double has all, so that only exact halves are halves.
double nearest(double value, int64_t precision) {
  constexpr int64_t kMostDigits = 323;  // of a double behind the point, as Python has it
  if (!std::isfinite(value) || precision > kMostDigits) return value;
  if (precision < 0) {
    if (!(std::abs(value) < kLargest)) fail_unsupported("whole numbers of more than 64 bits");
    if (precision < -18) return std::copysign(0.0, value);
    const double whole = std::trunc(value);
    const int64_t rounded =
        nearest_multiple(static_cast<int64_t>(whole), whole != value, power_of_ten(-precision));
    return std::copysign(static_cast<double>(rounded), value);
  }
  char digits[700];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::fixed,
                                 static_cast<int>(precision));
  double rounded = 0;
  std::from_chars(digits, end.ptr, rounded);
  return rounded;
}

Value nearest(const Value& value, int64_t precision) {
  if (!value.is_integer()) return Value::number(nearest(value.to_number(), precision));
  const int64_t whole = value.to_integer();
  if (precision >= 0) return Value::integer(whole);
  if (!(std::abs(static_cast<double>(whole)) < kLargest)) {
    fail_unsupported("whole numbers of more than 64 bits");
  }
  return Value::integer(precision < -18 ? 0
                                        : nearest_multiple(whole, false, power_of_ten(-precision)));
}

}  // namespace

Value round_number(const Call& call) {
  if (!call.self.is_number()) {
    fail(std::string("round is given ") + call.self.type_name() + "; expected a number");
  }
  if (call.at[0].has_value() && call.at[0]->is_none()) fail_unsupported("the precision none");
  const int64_t precision = call.integer(0, 0);
  const std::string method = call.text(1, "common");
  if (method == "common") return nearest(call.self, precision);
  if (method != "ceil" && method != "floor") {
    fail("round has the method '" + method + "'; expected common, ceil or floor");
  }
  const Value power =
      arithmetic("**", Value::integer(10), Value::integer(precision), call.evaluator);
  Value scaled = arithmetic("*", call.self, power, call.evaluator);
  if (!scaled.is_integer()) {
    const double number = scaled.to_number();
    if (!(std::abs(number) < kLargest)) fail_unsupported("whole numbers of more than 64 bits");
    const double whole = method == "ceil" ? std::ceil(number) : std::floor(number);
    scaled = Value::integer(static_cast<int64_t>(whole));
  }
  return arithmetic("/", scaled, power, call.evaluator);
}

}  // namespace executorch::extension::llm::jinja
