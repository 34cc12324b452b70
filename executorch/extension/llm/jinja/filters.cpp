// Filters of single values; those of sequences are in sequence_filters.cpp.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace executorch::extension::llm::jinja {
namespace {

std::string self_text(const Call& call) {
  return call.evaluator.to_text(call.self);
}

Value trim(const Call& call) {
  const std::string text = self_text(call);
  call.evaluator.budget().walk(text.size());
  return call.evaluator.text(
      std::string(call.has(0) ? strip(text, call.text(0), Side::Both) : strip(text)));
}

Value to_lower(const Call& call) {
  return call.evaluator.text(lower(self_text(call)));
}
Value to_upper(const Call& call) {
  return call.evaluator.text(upper(self_text(call)));
}
Value to_string(const Call& call) {
  return Value::text(self_text(call));
}
Value capitalize(const Call& call) {
  const std::string text = self_text(call);
  const size_t first = text.empty() ? 0 : first_character(text).size();
  return call.evaluator.text(upper(text.substr(0, first)) + lower(text.substr(first)));
}

/// A word begins behind a space, a dash, or an opening bracket.
Value title(const Call& call) {
  std::string result;
  bool begins_word = true;
  const std::string text = self_text(call);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view c = first_character(rest);
    rest.remove_prefix(c.size());
    result += begins_word ? upper(c) : lower(c);
    begins_word = is_all_space(c) || c == "-" || c == "(" || c == "{" || c == "[" || c == "<";
  }
  return call.evaluator.text(std::move(result));
}

Value replace(const Call& call) {
  const std::string text = self_text(call);
  const std::string before = call.evaluator.to_text(*call.at[0]);
  const std::string after = call.evaluator.to_text(*call.at[1]);
  int64_t left = call.integer(2, -1);
  call.evaluator.budget().search(text.size(), before.size());
  std::string result;
  size_t at = 0;
  const auto append = [&](std::string_view part) {
    call.evaluator.budget().bytes(part.size());
    result += part;
  };
  for (; left != 0; --left) {
    const size_t found = text.find(before, at);
    if (found == text.npos) break;
    append(std::string_view(text).substr(at, found - at));
    append(after);
    at = found + before.size();
    if (!before.empty()) continue;
    // Between characters, and at both ends.
    if (at >= text.size()) break;
    const size_t n = first_character(std::string_view(text).substr(at)).size();
    append(std::string_view(text).substr(at, n));
    at += n;
  }
  append(std::string_view(text).substr(std::min(at, text.size())));
  return Value::text(std::move(result));
}

Value default_value(const Call& call) {
  const bool replaces = call.self.is_undefined() || (call.boolean(1, false) && !is_true(call.self));
  return !replaces ? call.self : call.at[0].has_value() ? *call.at[0] : Value::text("");
}

Value count(const Call& call) {
  return Value::integer(length(call.self, call.evaluator.budget()));
}

Value indent(const Call& call) {
  if (call.self.as_text() == nullptr) {
    fail(std::string("indent is given ") + call.self.type_name() + "; expected a text");
  }
  std::string by;
  if (call.has(0) && call.at[0]->as_text() != nullptr) {
    by = *call.at[0]->as_text();
  } else {
    const int64_t width = call.integer(0, 4);
    if (width > 1000)
      fail("the width of an indent is " + std::to_string(width) + "; expected at most 1000");
    by.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = call.boolean(1, false);
  const bool blank = call.boolean(2, false);
  // Python appends a line feed, so that a last one gives a line that is empty.
  const std::string text = self_text(call) + "\n";
  std::string result;
  size_t i = 0;
  for_each_line(text, false, [&](std::string_view line) {
    if (i > 0) result += '\n';
    const bool is_indented = i == 0 ? first : blank || !line.empty();
    call.evaluator.budget().bytes(by.size() + line.size() + 1);
    if (is_indented) result += by;
    result += line;
    ++i;
  });
  return Value::text(std::move(result));
}

std::optional<double> number_in(std::string_view text) {
  text = strip(text);
  const bool has_sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  const std::string_view digits = has_sign ? text.substr(1) : text;
  if (digits.find_first_not_of("0123456789.eE+-") != digits.npos) {
    fail_unsupported("the number '" + std::string(text.substr(0, 40)) + "'");
  }
  double number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_signed_twice = !digits.empty() && (digits[0] == '-' || digits[0] == '+');
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size() || is_signed_twice) {
    return std::nullopt;
  }
  return has_sign && text[0] == '-' ? -number : number;
}

/// Whether the filters int and float fall back to their default for `text`: letters are no numbers.
bool is_no_number(std::string_view text) {
  text = strip(text);
  return text.empty() ||
         !std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Value to_integer(const Call& call) {
  if (call.has(1)) fail_unsupported("the base of the filter int");
  if (call.self.is_undefined()) fail("int is given an undefined value");
  if (call.self.is_integer()) return Value::integer(call.self.to_integer());
  std::optional<double> number;
  if (const std::string* const text = call.self.as_text()) {
    const std::string_view digits = strip(*text);
    int64_t whole = 0;
    const size_t plus = !digits.empty() && digits[0] == '+' ? 1 : 0;
    const auto read = std::from_chars(digits.data() + plus, digits.data() + digits.size(), whole);
    const bool is_whole = read.ptr == digits.data() + digits.size() && read.ec == std::errc() &&
                          !(plus == 1 && digits.size() > 1 && digits[1] == '-');
    if (is_whole) return Value::integer(whole);
    if (!is_no_number(*text)) number = number_in(*text);
  } else if (call.self.is_number()) {
    number = call.self.to_number();
  }
  if (!number.has_value()) return call.at[0].has_value() ? *call.at[0] : Value::integer(0);
  if (!(std::abs(*number) < 9e18)) fail_unsupported("whole numbers of more than 64 bits");
  return Value::integer(static_cast<int64_t>(*number));
}

Value to_float(const Call& call) {
  if (call.self.is_undefined()) fail("float is given an undefined value");
  if (call.self.is_number()) return Value::number(call.self.to_number());
  std::optional<double> number;
  const std::string* const text = call.self.as_text();
  if (text != nullptr && !is_no_number(*text)) number = number_in(*text);
  if (number.has_value()) return Value::number(*number);
  return call.at[0].has_value() ? *call.at[0] : Value::number(0);
}

Value absolute(const Call& call) {
  if (!call.self.is_number()) fail(std::string("abs is given ") + call.self.type_name());
  const Value value = call.self.get<bool>() ? Value::integer(call.self.to_integer()) : call.self;
  return value.to_number() < 0 ? negative(value) : value;
}

Value format(const Call& call) {
  return Value::text(formatted(self_text(call), call.given, call.evaluator));
}

Value to_json(const Call& call) {
  return call.evaluator.text(json_text(call.self, call));
}

const std::vector<Function>& filters() {
  static const std::vector<Function> table = {
      {"trim", {"chars"}, 0, trim},
      {"lower", {}, 0, to_lower},
      {"upper", {}, 0, to_upper},
      {"capitalize", {}, 0, capitalize},
      {"title", {}, 0, title},
      {"string", {}, 0, to_string},
      // Nothing is escaped, so that nothing needs to be kept from it.
      {"safe", {}, 0, to_string},
      {"replace", {"old", "new", "count"}, 2, replace},
      {"default", {"default_value", "boolean"}, 0, default_value},
      {"d", {"default_value", "boolean"}, 0, default_value},
      {"length", {}, 0, count},
      {"count", {}, 0, count},
      {"indent", {"width", "first", "blank"}, 0, indent},
      {"int", {"default", "base"}, 0, to_integer},
      {"float", {"default"}, 0, to_float},
      {"abs", {}, 0, absolute},
      {"round", {"precision", "method"}, 0, round_number},
      {"format", {"*"}, 0, format},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, to_json},
  };
  return table;
}

}  // namespace

const Function* find_filter(std::string_view name) {
  const Function* const found = find_in(filters(), name);
  return found != nullptr ? found : find_in(sequence_filters(), name);
}

Value Evaluator::filter(const std::string& name, const Value& value, const Arguments& given) {
  const Function* const found = find_filter(name);
  if (found == nullptr) fail_unsupported("the filter " + name);
  return jinja::run(*found, *this, value, given);
}

}  // namespace executorch::extension::llm::jinja
