// Methods of texts, lists and mappings.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>

namespace executorch::extension::llm::jinja {
namespace {

const std::string& self_text(const Call& call) {
  return *call.self.as_text();
}

template <Side side>
Value strip_side(const Call& call) {
  const std::string& text = self_text(call);
  call.evaluator.budget().walk(text.size());
  return call.evaluator.text(
      std::string(call.has(0) ? strip(text, call.text(0), side) : strip(text, side)));
}

Value to_lower(const Call& call) {
  return call.evaluator.text(lower(self_text(call)));
}
Value to_upper(const Call& call) {
  return call.evaluator.text(upper(self_text(call)));
}
Value capitalize(const Call& call) {
  const std::string_view text = self_text(call);
  if (text.empty()) return call.self;
  const std::string_view first = first_character(text);
  return call.evaluator.text(upper(first) + lower(text.substr(first.size())));
}

/// Each run of letters begins with a capital.
Value title(const Call& call) {
  std::string result;
  bool begins_word = true;
  for (const char c : self_text(call)) {
    if (static_cast<uint8_t>(c) >= 0x80) fail_unsupported("title() of texts beyond ASCII");
    const std::string one(1, c);
    result += begins_word ? upper(one) : lower(one);
    begins_word = !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
  }
  return call.evaluator.text(std::move(result));
}

/// Of one text, or any of a tuple.
template <bool at_end>
Value has_affix(const Call& call) {
  const std::string& text = self_text(call);
  const auto matches = [&](const Value& value) {
    if (value.as_text() == nullptr) {
      fail(std::string("found ") + value.type_name() + "; expected a text or a tuple of texts");
    }
    const std::string& affix = *value.as_text();
    call.evaluator.budget().steps(1);
    call.evaluator.budget().copy(std::min(text.size(), affix.size()));
    return text.size() >= affix.size() &&
           text.compare(at_end ? text.size() - affix.size() : 0, affix.size(), affix) == 0;
  };
  const Sequence* const several = call.at[0]->as_sequence();
  if (several == nullptr || several->kind != SequenceKind::Tuple) {
    return Value::boolean(matches(*call.at[0]));
  }
  return Value::boolean(std::any_of(several->items.begin(), several->items.end(), matches));
}

template <bool at_end>
Value without_affix(const Call& call) {
  const std::string& text = self_text(call);
  const size_t n = call.text(0).size();
  if (!is_true(has_affix<at_end>(call))) return call.self;
  return call.evaluator.text(at_end ? text.substr(0, text.size() - n) : text.substr(n));
}

Value list_of(const Call& call, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(call.evaluator.text(std::string(part)));
  return call.evaluator.list(std::move(items));
}

/// By runs of white space, which also end the text. Takes bytes for each part, as all that split.
std::vector<std::string_view> words(std::string_view text, int64_t most, bool from_end,
                                    Budget& budget) {
  std::vector<std::string_view> parts;
  budget.walk(text.size());
  const Side front = from_end ? Side::Right : Side::Left;
  text = strip(text, front);
  while (!text.empty()) {
    budget.bytes(Budget::kElement);
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(text);  // with the white space at its other end
      break;
    }
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view c = from_end ? last_character(rest) : first_character(rest);
      if (is_all_space(c)) break;
      rest = rest.substr(from_end ? 0 : c.size(), rest.size() - c.size());
    }
    const size_t n = text.size() - rest.size();
    parts.push_back(text.substr(from_end ? rest.size() : 0, n));
    text = strip(rest, front);
  }
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       int64_t most, bool from_end, Budget& budget) {
  std::vector<std::string_view> parts;
  budget.search(text.size(), separator.size());
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_end ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    const size_t behind = at + separator.size();
    budget.bytes(Budget::kElement);
    parts.push_back(from_end ? text.substr(behind) : text.substr(0, at));
    text = from_end ? text.substr(0, at) : text.substr(behind);
  }
  parts.push_back(text);
  return parts;
}

template <bool from_end>
Value split(const Call& call) {
  const std::string& text = self_text(call);
  const int64_t most = call.integer(1, -1);
  const std::string separator = call.text(0);
  if (call.has(0) && separator.empty()) fail("the separator is empty");
  Budget& budget = call.evaluator.budget();
  auto parts = call.has(0) ? split_at(text, separator, most, from_end, budget)
                           : words(text, most, from_end, budget);
  if (from_end) std::reverse(parts.begin(), parts.end());
  return list_of(call, parts);
}

Value split_lines(const Call& call) {
  Budget& budget = call.evaluator.budget();
  budget.walk(self_text(call).size());
  std::vector<std::string_view> lines;
  for_each_line(self_text(call), call.boolean(0, false), [&](std::string_view line) {
    budget.bytes(Budget::kElement);
    lines.push_back(line);
  });
  return list_of(call, lines);
}

Value replace(const Call& call) {
  return call.evaluator.filter("replace", call.self, call.given);
}

Value join(const Call& call) {
  std::string joined;
  bool is_first = true;
  for (const Value& item : elements(*call.at[0], call.evaluator.budget())) {
    if (item.as_text() == nullptr) {
      fail(std::string("an element is ") + item.type_name() + "; expected a text");
    }
    if (!is_first) joined += self_text(call);
    is_first = false;
    joined += *item.as_text();
    call.evaluator.budget().bytes(item.as_text()->size() + self_text(call).size());
  }
  return Value::text(std::move(joined));
}

Value format(const Call& call) {
  return Value::text(braces_filled(self_text(call), call.given, call.evaluator));
}

/// What is before a separator, it, and what is behind it.
template <bool from_end>
Value partition(const Call& call) {
  const std::string_view text = self_text(call);
  const std::string separator = call.text(0);
  if (separator.empty()) fail("the separator is empty");
  call.evaluator.budget().search(text.size(), separator.size());
  const size_t at = from_end ? text.rfind(separator) : text.find(separator);
  const bool is_there = at != text.npos;
  const size_t begin = is_there ? at : from_end ? 0 : text.size();
  const size_t end = is_there ? at + separator.size() : begin;
  std::vector<Value> parts;
  for (const auto& part :
       {text.substr(0, begin), text.substr(begin, end - begin), text.substr(end)}) {
    parts.push_back(call.evaluator.text(std::string(part)));
  }
  return call.evaluator.list(std::move(parts), SequenceKind::Tuple);
}

/// As a number of characters; -1 if it is not there.
template <bool from_end>
Value find_text(const Call& call) {
  const std::string& text = self_text(call);
  const std::string part = call.text(0);
  call.evaluator.budget().search(text.size(), part.size());
  const size_t at = from_end ? text.rfind(part) : text.find(part);
  if (at == text.npos) return Value::integer(-1);
  return Value::integer(static_cast<int64_t>(n_characters(std::string_view(text).substr(0, at))));
}

template <bool from_end>
Value index_of_text(const Call& call) {
  Value at = find_text<from_end>(call);
  if (at.to_integer() < 0) fail("a text has no such part");
  return at;
}

Value count_text(const Call& call) {
  const std::string part = call.text(0);
  Budget& budget = call.evaluator.budget();
  if (part.empty()) return Value::integer(length(call.self, budget) + 1);
  const auto parts = split_at(self_text(call), part, -1, false, budget);
  return Value::integer(static_cast<int64_t>(parts.size()) - 1);
}

Value is_digits(const Call& call) {
  const std::string& text = self_text(call);
  call.evaluator.budget().walk(text.size());
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) fail_unsupported("isdigit() of texts beyond ASCII");
    if (c < '0' || c > '9') return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

Value index_of(const Call& call) {
  const auto& items = call.self.as_sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (are_equal(items[i], *call.at[0], call.evaluator.budget())) {
      return Value::integer(static_cast<int64_t>(i));
    }
  }
  fail("a list has no such element");
}

Value count_equal(const Call& call) {
  int64_t n = 0;
  for (const Value& item : call.self.as_sequence()->items) {
    n += are_equal(item, *call.at[0], call.evaluator.budget()) ? 1 : 0;
  }
  return Value::integer(n);
}

Value get(const Call& call) {
  const Value* const found = find(*call.self.as_mapping(), *call.at[0], call.evaluator.budget());
  if (found != nullptr) return *found;
  return call.at[1].has_value() ? *call.at[1] : Value();
}

template <bool has_key, bool has_value>
Value view(const Call& call) {
  std::vector<Value> items;
  for (const auto& [key, value] : call.self.as_mapping()->items) {
    items.push_back(has_key && has_value ? call.evaluator.list({key, value}, SequenceKind::Tuple)
                    : has_key            ? key
                                         : value);
  }
  return call.evaluator.list(std::move(items), SequenceKind::View);
}

const std::vector<Function>& text_methods() {
  static const std::vector<Function> table = {
      {"strip", {"chars"}, 0, strip_side<Side::Both>},
      {"lstrip", {"chars"}, 0, strip_side<Side::Left>},
      {"rstrip", {"chars"}, 0, strip_side<Side::Right>},
      {"lower", {}, 0, to_lower},
      {"upper", {}, 0, to_upper},
      {"capitalize", {}, 0, capitalize},
      {"title", {}, 0, title},
      {"startswith", {"prefix"}, 1, has_affix<false>},
      {"endswith", {"suffix"}, 1, has_affix<true>},
      {"removeprefix", {"prefix"}, 1, without_affix<false>},
      {"removesuffix", {"suffix"}, 1, without_affix<true>},
      {"split", {"sep", "maxsplit"}, 0, split<false>},
      {"rsplit", {"sep", "maxsplit"}, 0, split<true>},
      {"splitlines", {"keepends"}, 0, split_lines},
      {"replace", {"*"}, 0, replace},
      {"join", {"iterable"}, 1, join},
      {"find", {"sub"}, 1, find_text<false>},
      {"rfind", {"sub"}, 1, find_text<true>},
      {"index", {"sub"}, 1, index_of_text<false>},
      {"rindex", {"sub"}, 1, index_of_text<true>},
      {"count", {"sub"}, 1, count_text},
      {"partition", {"sep"}, 1, partition<false>},
      {"rpartition", {"sep"}, 1, partition<true>},
      {"format", {"*"}, 0, format},
      {"isdigit", {}, 0, is_digits},
  };
  return table;
}

}  // namespace

const Function* find_method(const Value& self, std::string_view name) {
  static const std::vector<Function> of_lists = {{"index", {"value"}, 1, index_of},
                                                 {"count", {"value"}, 1, count_equal}};
  static const std::vector<Function> of_mappings = {{"get", {"key", "default"}, 1, get},
                                                    {"keys", {}, 0, view<true, false>},
                                                    {"values", {}, 0, view<false, true>},
                                                    {"items", {}, 0, view<true, true>}};
  // Those that change something are not there in Jinja's sandbox, either.
  static const std::vector<std::string_view> missing = {
      "casefold",     "center",  "encode",   "expandtabs", "format_map", "fromkeys",
      "isalnum",      "isalpha", "isascii",  "isdecimal",  "islower",    "isnumeric",
      "isidentifier", "isspace", "istitle",  "isupper",    "ljust",      "maketrans",
      "isprintable",  "rjust",   "swapcase", "translate",  "zfill"};
  const Function* found = nullptr;
  if (self.as_text() != nullptr) {
    found = find_in(text_methods(), name);
    const bool is_missing = std::find(missing.begin(), missing.end(), name) != missing.end();
    if (found == nullptr && is_missing) fail_unsupported("the method " + std::string(name));
  } else if (const Sequence* const sequence = self.as_sequence()) {
    if (sequence->kind <= SequenceKind::Range) found = find_in(of_lists, name);
  } else if (self.as_mapping() != nullptr) {
    found = find_in(of_mappings, name);
    if (name == "copy" || name == "fromkeys") fail_unsupported("the method " + std::string(name));
  }
  return found;
}

}  // namespace executorch::extension::llm::jinja
