#include <executorch/extension/llm/sampler/constraint/json_numbers.h>

#include <executorch/extension/llm/sampler/constraint/code_points.h>
#include <executorch/extension/llm/sampler/constraint/regex.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace executorch::extension::llm::constraint {
namespace {

constexpr int64_t kMostInteger = 999'999'999'999'999'999;
constexpr size_t kSignificant = 15;

/// The absolute value of a bound: the whole part, and the digits after the point.
struct Magnitude {
  int64_t whole = 0;
  std::vector<int> fraction;
  bool excluded = false;
};

struct Bound {
  double value;
  bool excluded;
};

std::optional<Bound> bound(const Json& schema, const char* name, const char* exclusive, double sign,
                           const std::string& pointer) {
  std::optional<Bound> tightest;
  for (const auto& [keyword, excluded] : {std::pair{name, false}, std::pair{exclusive, true}}) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) continue;
    if (!found->is_number()) fail_at(child(pointer, keyword), "a number is expected");
    const Bound given{found->get<double>(), excluded};
    if (!std::isfinite(given.value))
      fail_at(child(pointer, keyword), "a finite number is expected");
    if (!tightest || sign * given.value > sign * tightest->value ||
        (given.value == tightest->value && excluded)) {
      tightest = given;
    }
  }
  return tightest;
}

std::optional<Bound> lower_bound(const Json& schema, const std::string& pointer) {
  return bound(schema, "minimum", "exclusiveMinimum", 1, pointer);
}

std::optional<Bound> upper_bound(const Json& schema, const std::string& pointer) {
  return bound(schema, "maximum", "exclusiveMaximum", -1, pointer);
}

std::vector<int> decimal_digits(int64_t number) {
  std::vector<int> digits;
  for (const char c : std::to_string(number)) digits.push_back(c - '0');
  return digits;
}

/// Adds the whole numbers from `first` to `last`; first >= 0.
void add_whole(NfaBuilder& builder, State from, State to, int64_t first, int64_t last) {
  int64_t least = 0, most = 9;  // with so many digits
  while (least <= last) {
    if (const int64_t a = std::max(first, least), b = std::min(last, most); a <= b) {
      add_digits(builder, from, to, kDecimal, decimal_digits(a), decimal_digits(b));
    }
    if (most == kMostInteger) return;
    least = most + 1;
    most = most * 10 + 9;
  }
}

/// Adds up to `most` digits after the point, such that the number is between `first` and `last`, if
/// these are given. A state stands for the number of digits read, and for whether they are equal to
/// the digits of `first` and of `last` so far.
class Fractions {
 public:
  Fractions(NfaBuilder& builder, State to, const Magnitude* first, const Magnitude* last,
            size_t most)
      : builder_(builder), to_(to), first_(first), last_(last), most_(most) {}

  /// `from` is the state after the whole part.
  void add(State from) {
    if (may_end(0, first_ != nullptr, last_ != nullptr)) builder_.add_epsilon(from, to_);
    const State point = builder_.add_state();
    builder_.add_byte(from, point, '.');
    add_digit(point, 0, first_ != nullptr, last_ != nullptr);
  }

 private:
  static int digit(const Magnitude& bound, size_t i) {
    return i < bound.fraction.size() ? bound.fraction[i] : 0;
  }

  static bool rest_is_zero(const Magnitude& bound, size_t i) {
    for (; i < bound.fraction.size(); ++i) {
      if (bound.fraction[i] != 0) return false;
    }
    return true;
  }

  bool may_end(size_t i, bool at_first, bool at_last) const {
    if (at_first && (!rest_is_zero(*first_, i) || first_->excluded)) return false;
    return !(at_last && rest_is_zero(*last_, i) && last_->excluded);
  }

  void add_digit(State from, size_t i, bool at_first, bool at_last) {
    if (i == most_) return;
    // Digits that lead to the same state share an edge.
    std::vector<std::pair<std::pair<bool, bool>, ByteSet>> next;
    for (int d = 0; d <= 9; ++d) {
      if (at_first && d < digit(*first_, i)) continue;
      if (at_last && d > digit(*last_, i)) continue;
      const std::pair still{at_first && d == digit(*first_, i), at_last && d == digit(*last_, i)};
      auto same = std::find_if(next.begin(), next.end(), [&](auto& n) { return n.first == still; });
      if (same == next.end()) same = next.insert(next.end(), {still, {}});
      same->second.set(static_cast<size_t>('0' + d));
    }
    for (const auto& [still, digits] : next) {
      State& state = states_[i][still.first][still.second];
      const bool is_new = state == 0;
      if (is_new) state = builder_.add_state();
      builder_.add_bytes(from, state, digits);
      if (!is_new) continue;
      if (may_end(i + 1, still.first, still.second)) builder_.add_epsilon(state, to_);
      add_digit(state, i + 1, still.first, still.second);
    }
  }

  NfaBuilder& builder_;
  const State to_;
  const Magnitude *first_, *last_;
  const size_t most_;
  State states_[kSignificant + 20][2][2] = {};
};

/// Numbers that are not negative; the number 0 is a text of its own where both signs are possible.
void add_magnitudes(NfaBuilder& builder, State from, State to, const Magnitude& first,
                    const std::optional<Magnitude>& last) {
  const size_t n_fraction = std::max(first.fraction.size(), last ? last->fraction.size() : 0);
  const size_t n_whole = decimal_digits(last ? last->whole : first.whole).size();
  const size_t most =
      std::max(n_fraction, n_whole < kSignificant ? kSignificant - n_whole : size_t{1});
  const auto add = [&](int64_t a, int64_t b, const Magnitude* low, const Magnitude* high) {
    if (a > b) return;
    const State point = builder.add_state();
    add_whole(builder, from, point, a, b);
    Fractions(builder, to, low, high, most).add(point);
  };
  if (!last) {
    add(first.whole, first.whole, &first, nullptr);
    return add(first.whole + 1, kMostInteger / 1000, nullptr, nullptr);
  }
  if (first.whole == last->whole) return add(first.whole, first.whole, &first, &*last);
  add(first.whole, first.whole, &first, nullptr);
  add(first.whole + 1, last->whole - 1, nullptr, nullptr);
  add(last->whole, last->whole, nullptr, &*last);
}

Magnitude magnitude(const Bound& bound, const std::string& pointer) {
  const double value = std::abs(bound.value);
  if (value >= 1e15) fail_at(pointer, "bounds of numbers are supported up to 1e15");
  char text[64];
  const auto written = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed);
  const std::string digits(text, written.ec == std::errc() ? written.ptr : text);
  const size_t point = std::min(digits.find('.'), digits.size());
  if (digits.empty() || digits.size() > point + 1 + kSignificant) {
    fail_at(pointer, "bounds of numbers are supported with up to 15 digits behind the point");
  }
  Magnitude result{std::stoll(digits), {}, bound.excluded};
  for (size_t i = point + 1; i < digits.size(); ++i) result.fraction.push_back(digits[i] - '0');
  return result;
}

void add_regex(NfaBuilder& builder, State from, State to, const char* pattern) {
  Regex(pattern).add_whole(builder, from, to, add_utf8);
}

}  // namespace

void add_integers(NfaBuilder& builder, State from, State to, const Json& schema,
                  const std::string& pointer) {
  int64_t first = -kMostInteger, last = kMostInteger;
  if (const auto low = lower_bound(schema, pointer)) {
    const double least = low->excluded ? std::floor(low->value) + 1 : std::ceil(low->value);
    if (least > static_cast<double>(kMostInteger)) {
      fail_at(pointer, "integers have at most 18 digits");
    }
    if (least > static_cast<double>(first)) first = static_cast<int64_t>(least);
  }
  if (const auto high = upper_bound(schema, pointer)) {
    const double most = high->excluded ? std::ceil(high->value) - 1 : std::floor(high->value);
    if (most < static_cast<double>(-kMostInteger)) {
      fail_at(pointer, "integers have at most 18 digits");
    }
    if (most < static_cast<double>(last)) last = static_cast<int64_t>(most);
  }
  if (last >= 0) add_whole(builder, from, to, std::max<int64_t>(first, 0), last);
  if (first < 0) {
    const State minus = builder.add_state();
    builder.add_byte(from, minus, '-');
    add_whole(builder, minus, to, last < 0 ? -last : 0, -first);
  }
}

void add_numbers(NfaBuilder& builder, State from, State to, const Json& schema,
                 const std::string& pointer) {
  const auto low = lower_bound(schema, pointer), high = upper_bound(schema, pointer);
  if (!low && !high) {
    return add_regex(builder, from, to,
                     "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?");
  }
  if (low && high && low->value > high->value) return;
  const State minus = builder.add_state();
  builder.add_byte(from, minus, '-');
  const Magnitude zero;
  // Add the numbers that are not negative, then the negative ones, for which the bounds change
  // places.
  if (!high || high->value >= 0) {
    std::optional<Magnitude> last;
    if (high) last = magnitude(*high, pointer);
    add_magnitudes(builder, from, to, low && low->value >= 0 ? magnitude(*low, pointer) : zero,
                   last);
  }
  if (!low || low->value < 0) {
    std::optional<Magnitude> last;
    if (low) last = magnitude(*low, pointer);
    Magnitude first = high && high->value <= 0 ? magnitude(*high, pointer) : zero;
    add_magnitudes(builder, minus, to, first, last);
  }
}

}  // namespace executorch::extension::llm::constraint
