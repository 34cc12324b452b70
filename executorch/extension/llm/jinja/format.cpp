// The filter format: Python's formatting of texts with %.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace executorch::extension::llm::jinja {
namespace {

/// What stands behind one %.
struct Place {
  bool is_left = false, has_plus = false, has_space = false, has_base = false, has_zeros = false;
  int64_t width = 0;
  int64_t precision = -1;  // -1: not given
  char kind = 0;
};

void make_upper(std::string& text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// The digits of a whole number, of at least the precision, behind its sign and the base's mark.
std::string whole_text(const Value& value, const Place& place) {
  const bool is_decimal = place.kind == 'd' || place.kind == 'i' || place.kind == 'u';
  int64_t whole = 0;
  if (value.is_integer()) {
    whole = value.to_integer();
  } else if (is_decimal && value.is_number()) {
    if (!(std::abs(value.to_number()) < 9e18)) {
      fail_unsupported("whole numbers of more than 64 bits");
    }
    whole = static_cast<int64_t>(value.to_number());
  } else {
    fail(std::string("%") + place.kind + " is given " + value.type_name() + "; expected a number");
  }
  const int base = is_decimal ? 10 : place.kind == 'o' ? 8 : 16;
  const uint64_t magnitude =
      whole < 0 ? 0 - static_cast<uint64_t>(whole) : static_cast<uint64_t>(whole);
  char buffer[70];
  std::string digits(buffer, std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base).ptr);
  if (place.precision > static_cast<int64_t>(digits.size())) {
    digits.insert(0, static_cast<size_t>(place.precision) - digits.size(), '0');
  }
  if (place.has_base && !is_decimal) digits.insert(0, base == 8 ? "0o" : "0x");
  if (place.kind == 'X') make_upper(digits);
  return (whole < 0 ? "-" : "") + digits;
}

std::string number_text(const Value& value, const Place& place) {
  if (!value.is_number()) {
    fail(std::string("%") + place.kind + " is given " + value.type_name() + "; expected a number");
  }
  if (place.has_base) fail_unsupported("# for numbers with a fraction");
  const char kind = static_cast<char>(place.kind | 0x20);
  const auto format = kind == 'e'   ? std::chars_format::scientific
                      : kind == 'f' ? std::chars_format::fixed
                                    : std::chars_format::general;
  const int64_t precision = place.precision < 0 ? 6 : place.precision;
  std::string text(static_cast<size_t>(precision) + 400, '\0');  // a double has up to 309 digits
  // Python has one nan, without a sign.
  const double number =
      std::isnan(value.to_number()) ? std::abs(value.to_number()) : value.to_number();
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format,
                                 static_cast<int>(precision));
  text.resize(static_cast<size_t>(end.ptr - text.data()));
  if (kind != place.kind) make_upper(text);
  return text;
}

class Formatter {
 public:
  Formatter(std::string_view text, const Arguments& given, Evaluator& evaluator)
      : text_(text), given_(given), evaluator_(evaluator) {}

  std::string run(bool may_be_left) {
    if (!given_.values.empty() && !given_.named.empty()) {
      fail("format is given values with and without names; expected one kind");
    }
    std::string result;
    const auto append = [&](std::string_view part) {
      evaluator_.budget().bytes(part.size());
      result += part;
    };
    while (at_ < text_.size()) {
      const size_t percent = std::min(text_.find('%', at_), text_.size());
      append(text_.substr(at_, percent - at_));
      at_ = percent + 1;
      if (percent < text_.size()) append(skip('%') ? "%" : next_place());
    }
    if (n_taken_ < given_.values.size() && !may_be_left) {
      fail("format is given " + std::to_string(given_.values.size()) + " values; the text takes " +
           std::to_string(n_taken_));
    }
    return result;
  }

 private:
  char peek() const {
    if (at_ >= text_.size()) fail("a format ends behind %");
    return text_[at_];
  }
  bool skip(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  const Value& value() {
    if (named_ != nullptr) return *std::exchange(named_, nullptr);
    if (!given_.named.empty()) fail_unsupported("a format without a name where values have names");
    if (n_taken_ == given_.values.size()) fail("a format has no value: too few are given");
    return given_.values[n_taken_++];
  }

  /// The value of `(name)`; null where there is none.
  const Value* name() {
    if (!skip('(')) return nullptr;
    if (given_.named.empty()) fail("a format has a name; expected values with names");
    std::string name;
    for (int depth = 1;; name += text_[at_++]) {
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    ++at_;
    evaluator_.budget().steps(given_.named.size());
    for (const auto& one : given_.named) {
      if (one.first == name) return &one.second;
    }
    fail("a format has the name '" + name + "', for which there is no value");
  }

  /// Digits, or `*` for the next value.
  int64_t number() {
    int64_t number = 0;
    if (skip('*')) {
      const Value& given = value();
      if (!given.is_integer()) {
        fail(std::string("* is given ") + given.type_name() + "; expected an int");
      }
      number = given.to_integer();
    } else {
      while (peek() >= '0' && peek() <= '9') {
        number = number * 10 + (text_[at_++] - '0');
        if (number > INT32_MAX) break;
      }
    }
    if (number > INT32_MAX || number < -INT32_MAX) fail("a format has a number that is too large");
    return number;
  }

  Place read() {
    Place place;
    named_ = name();
    for (;; ++at_) {
      bool* const flag = peek() == '-'   ? &place.is_left
                         : peek() == '+' ? &place.has_plus
                         : peek() == ' ' ? &place.has_space
                         : peek() == '#' ? &place.has_base
                         : peek() == '0' ? &place.has_zeros
                                         : nullptr;
      if (flag == nullptr) break;
      *flag = true;
    }
    place.width = number();
    if (place.width < 0) {
      place.is_left = true;
      place.width = -place.width;
    }
    if (skip('.')) place.precision = std::max<int64_t>(number(), 0);
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    place.kind = peek();
    ++at_;
    evaluator_.budget().bytes(static_cast<uint64_t>(place.width) +
                              static_cast<uint64_t>(std::max<int64_t>(place.precision, 0)));
    return place;
  }

  std::string next_place() {
    const Place place = read();
    const std::string_view kinds = "sdiuoxXeEfFgGc";
    if (place.kind == 'r' || place.kind == 'a') fail_unsupported("formats with %r and %a");
    if (kinds.find(place.kind) == kinds.npos) {
      fail(std::string("found the format %") + place.kind + "; expected one of " +
           std::string(kinds));
    }
    const Value& given = value();
    if (place.kind == 's') return filled(cut(evaluator_.to_text(given), place.precision), place);
    if (place.kind == 'c') return filled(character(given), place);
    const bool is_whole = std::string_view("diuoxX").find(place.kind) != std::string_view::npos;
    return signed_and_filled(is_whole ? whole_text(given, place) : number_text(given, place),
                             place);
  }

  std::string character(const Value& given) const {
    const std::string* const text = given.as_text();
    if (given.is_integer()) fail_unsupported("the format %c of a number");
    if (text == nullptr || n_characters(*text) != 1) {
      fail(std::string("%c is given ") + given.type_name() + "; expected one character");
    }
    return *text;
  }

  std::string cut(std::string text, int64_t precision) {
    if (precision < 0) return text;
    evaluator_.budget().walk(text.size());
    std::string_view rest = text;
    for (; precision > 0 && !rest.empty(); --precision) {
      rest.remove_prefix(first_character(rest).size());
    }
    text.resize(text.size() - rest.size());
    return text;
  }

  std::string filled(std::string text, const Place& place) {
    evaluator_.budget().walk(text.size());
    const auto n = static_cast<int64_t>(n_characters(text));
    if (n >= place.width) return text;
    const std::string space(static_cast<size_t>(place.width - n), ' ');
    return place.is_left ? text + space : space + text;
  }

  /// Zeros stand between the sign, or the base's mark, and the digits.
  std::string signed_and_filled(std::string text, const Place& place) {
    if (text[0] != '-' && (place.has_plus || place.has_space)) {
      text.insert(0, 1, place.has_plus ? '+' : ' ');
    }
    if (place.has_zeros && !place.is_left && static_cast<int64_t>(text.size()) < place.width) {
      size_t begin = text[0] == '-' || text[0] == '+' || text[0] == ' ' ? 1 : 0;
      const bool is_based = place.kind == 'x' || place.kind == 'X' || place.kind == 'o';
      if (place.has_base && is_based) begin += 2;
      text.insert(begin, static_cast<size_t>(place.width) - text.size(), '0');
    }
    return filled(std::move(text), place);
  }

  const std::string_view text_;
  const Arguments& given_;
  Evaluator& evaluator_;
  size_t at_ = 0;
  size_t n_taken_ = 0;
  const Value* named_ = nullptr;
};

/// What stands for `{place}`; `n_taken` counts the places without a number or name.
const Value& value_at(std::string_view place, const Arguments& given, size_t& n_taken) {
  if (place.find_first_of(".[!:{") != place.npos) {
    fail_unsupported("the place {" + std::string(place.substr(0, 40)) + "} of format()");
  }
  const bool is_number = place.find_first_not_of("0123456789") == place.npos && place.size() < 10;
  if (!is_number) {
    for (const auto& one : given.named) {
      if (one.first == place) return one.second;
    }
    fail("format has a place {" + std::string(place) + "}, for which there is no value");
  }
  const bool counts = place.empty();
  constexpr size_t kNumbered = SIZE_MAX;
  if (counts ? n_taken == kNumbered : n_taken != 0 && n_taken != kNumbered) {
    fail("format has places with and without a number");
  }
  const size_t at = counts ? n_taken++ : std::stoul(std::string(place));
  if (!counts) n_taken = kNumbered;
  if (at >= given.values.size()) {
    fail("format has a place for value " + std::to_string(at) + " and is given " +
         std::to_string(given.values.size()));
  }
  return given.values[at];
}

}  // namespace

std::string braces_filled(std::string_view text, const Arguments& given, Evaluator& evaluator) {
  std::string result;
  size_t n_taken = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t brace = std::min(text.find_first_of("{}", at), text.size());
    std::string part(text.substr(at, brace - at));
    at = brace + 1;
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
      part += text[at++];
    } else if (brace < text.size()) {
      const size_t end = text.find('}', brace);
      if (text[brace] == '}' || end == text.npos) fail("format has a brace by itself");
      evaluator.budget().steps(1 + given.named.size());
      part += evaluator.to_text(value_at(text.substr(at, end - at), given, n_taken));
      at = end + 1;
    }
    evaluator.budget().bytes(part.size());
    result += part;
  }
  return result;
}

std::string formatted(std::string_view text, const Arguments& given, Evaluator& evaluator,
                      bool may_be_left) {
  return Formatter(text, given, evaluator).run(may_be_left);
}

}  // namespace executorch::extension::llm::jinja
