// Operators between values, with Python's results.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>
#include <cmath>

namespace executorch::extension::llm::jinja {
namespace {

[[noreturn]] void fail_between(const std::string& name, const Value& a, const Value& b) {
  fail(std::string("found ") + a.type_name() + " " + name + " " + b.type_name() +
       ", which has no meaning");
}

[[noreturn]] void fail_large() {
  fail_unsupported("whole numbers of more than 64 bits");
}

/// Rounded down.
int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("found 0 to the power of a negative number");
    return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) fail_large();
  }
  return Value::integer(result);
}

Value integers(const std::string& name, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (name == "**") return integer_power(a, b);
  if (name == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (name == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (name == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else {
    if (b == 0) fail("found a division by zero");
    // The one quotient that does not fit; its operands would stop the process.
    overflows = a == INT64_MIN && b == -1;
    if (name == "/") return Value::number(static_cast<double>(a) / static_cast<double>(b));
    if (!overflows) result = floor_quotient(a, b);
    if (!overflows && name == "%") result = a - result * b;
  }
  if (overflows) fail_large();
  return Value::integer(result);
}

Value numbers(const std::string& name, double a, double b) {
  if (name == "+") return Value::number(a + b);
  if (name == "-") return Value::number(a - b);
  if (name == "*") return Value::number(a * b);
  if (name == "**") {
    const double result = std::pow(a, b);
    if (!std::isfinite(result)) fail_unsupported("powers that are no finite numbers");
    return Value::number(result);
  }
  if (b == 0) fail("found a division by zero");
  if (name == "/") return Value::number(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (name == "%") return Value::number(rest == 0 ? std::copysign(0.0, b) : rest);
  return Value::number(std::round((a - rest) / b));
}

bool is_list(const Sequence* sequence) {
  return sequence != nullptr &&
         (sequence->kind == SequenceKind::List || sequence->kind == SequenceKind::Tuple);
}

Value repeated(const Value& value, int64_t n, Evaluator& evaluator) {
  n = std::max<int64_t>(n, 0);
  const std::string* const text = value.as_text();
  const size_t size = text != nullptr ? text->size() : value.as_sequence()->items.size();
  uint64_t total = 0;
  const uint64_t one = size * (text != nullptr ? 1 : Budget::kElement);
  if (__builtin_mul_overflow(one, static_cast<uint64_t>(n), &total)) total = UINT64_MAX;
  evaluator.budget().bytes(total);
  if (size == 0) n = 0;
  if (text != nullptr) {
    std::string result;
    for (int64_t i = 0; i < n; ++i) result += *text;
    return Value::text(std::move(result));
  }
  std::vector<Value> items;
  const auto& once = value.as_sequence()->items;
  for (int64_t i = 0; i < n; ++i) items.insert(items.end(), once.begin(), once.end());
  return Value::sequence(std::move(items), value.as_sequence()->kind);
}

bool can_repeat(const Value& value, const Value& count) {
  return count.is_integer() && (value.as_text() != nullptr || is_list(value.as_sequence()));
}

/// What `text % value` formats: the members of a tuple, those of a mapping by name, or the value.
Arguments format_arguments(const Value& value) {
  Arguments given;
  const Sequence* const sequence = value.as_sequence();
  const Mapping* const mapping = value.as_mapping();
  if (sequence != nullptr && sequence->kind == SequenceKind::Tuple) {
    given.values = sequence->items;
  } else if (mapping != nullptr) {
    if (mapping->items.empty()) fail_unsupported("formatting an empty mapping with %");
    for (const auto& [key, member] : mapping->items) {
      if (key.as_text() != nullptr) given.named.emplace_back(*key.as_text(), member);
    }
  } else {
    given.values = {value};
  }
  return given;
}

}  // namespace

Value arithmetic(const std::string& name, const Value& a, const Value& b, Evaluator& evaluator) {
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? integers(name, a.to_integer(), b.to_integer())
                                            : numbers(name, a.to_number(), b.to_number());
  }
  if (name == "+" && a.as_text() && b.as_text()) {
    evaluator.budget().bytes(a.as_text()->size() + b.as_text()->size());
    return Value::text(*a.as_text() + *b.as_text());
  }
  if (name == "+" && is_list(a.as_sequence()) && is_list(b.as_sequence()) &&
      a.as_sequence()->kind == b.as_sequence()->kind) {
    std::vector<Value> items = a.as_sequence()->items;
    const auto& more = b.as_sequence()->items;
    items.insert(items.end(), more.begin(), more.end());
    return evaluator.list(std::move(items), a.as_sequence()->kind);
  }
  if (name == "*" && can_repeat(a, b)) return repeated(a, b.to_integer(), evaluator);
  if (name == "*" && can_repeat(b, a)) return repeated(b, a.to_integer(), evaluator);
  if (name == "%" && a.as_text()) {
    // Python takes what has elements by index for a mapping, of which nothing needs to be taken.
    const bool may_be_left = b.is_undefined() || (b.as_sequence() != nullptr &&
                                                  (b.as_sequence()->kind == SequenceKind::List ||
                                                   b.as_sequence()->kind == SequenceKind::Range));
    return Value::text(formatted(*a.as_text(), format_arguments(b), evaluator, may_be_left));
  }
  fail_between(name, a, b);
}

Value negative(const Value& value) {
  if (!value.is_number()) fail(std::string("found - before ") + value.type_name());
  if (!value.is_integer()) return Value::number(-value.to_number());
  if (value.to_integer() == INT64_MIN) fail_large();
  return Value::integer(-value.to_integer());
}

bool contains(const Value& container, const Value& value, Evaluator& evaluator) {
  if (const std::string* const text = container.as_text()) {
    if (value.as_text() == nullptr) fail_between("in", value, container);
    evaluator.budget().search(text->size(), value.as_text()->size());
    return text->find(*value.as_text()) != text->npos;
  }
  if (const Mapping* const mapping = container.as_mapping()) {
    return find(*mapping, value, evaluator.budget()) != nullptr;
  }
  if (container.is_undefined()) return false;
  const Sequence* const sequence = container.as_sequence();
  if (sequence == nullptr) fail_between("in", value, container);
  for (size_t i = sequence->n_taken; i < sequence->items.size(); ++i) {
    if (sequence->kind == SequenceKind::Generator) sequence->n_taken = i + 1;
    if (are_equal(sequence->items[i], value, evaluator.budget())) return true;
  }
  if (sequence->failure != nullptr) throw Failure(*sequence->failure);
  return false;
}

Value slice(const Value& value, const Value& start, const Value& stop, const Value& step,
            Evaluator& evaluator) {
  for (const Value* const part : {&start, &stop, &step}) {
    if (!part->is_none() && !part->is_integer()) {
      fail(std::string("a bound of a slice is ") + part->type_name() + "; expected an int");
    }
  }
  const Sequence* const sequence = value.as_sequence();
  const bool has_places = sequence != nullptr && sequence->kind <= SequenceKind::Range;
  if (!has_places && value.as_text() == nullptr) {
    fail(std::string("found a slice of ") + value.type_name() + "; expected a text or list");
  }
  const int64_t by = step.is_none() ? 1 : step.to_integer();
  if (by == 0) fail("the step of a slice is 0");
  const int64_t n = length(value, evaluator.budget());
  // Python's rules: bounds count from the end if negative, and are moved into the range.
  const int64_t low = by < 0 ? -1 : 0;
  const int64_t high = by < 0 ? n - 1 : n;
  const auto bound = [&](const Value& part, int64_t otherwise) {
    if (part.is_none()) return otherwise;
    const int64_t given = part.to_integer();
    return std::clamp(given < 0 ? given + n : given, low, high);
  };
  const int64_t first = bound(start, by < 0 ? high : low);
  const int64_t last = bound(stop, by < 0 ? low : high);
  const int64_t span = by < 0 ? first - last : last - first;
  const uint64_t stride = by < 0 ? 0 - static_cast<uint64_t>(by) : static_cast<uint64_t>(by);
  const uint64_t n_places = span <= 0 ? 0 : (static_cast<uint64_t>(span) - 1) / stride + 1;
  evaluator.budget().bytes(n_places * sizeof(int64_t));
  std::vector<int64_t> places;
  for (int64_t i = first; by < 0 ? i > last : i < last;) {
    places.push_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (value.as_text() != nullptr) {
    evaluator.budget().bytes(static_cast<uint64_t>(n) * sizeof(std::string_view));
    const auto all = characters(*value.as_text());
    std::string result;
    for (const int64_t i : places) result += all[static_cast<size_t>(i)];
    return evaluator.text(std::move(result));
  }
  std::vector<Value> items;
  for (const int64_t i : places) items.push_back(sequence->items[static_cast<size_t>(i)]);
  return evaluator.list(std::move(items), sequence->kind);
}

}  // namespace executorch::extension::llm::jinja
