// What may stand behind `is`.
#include <executorch/extension/llm/jinja/evaluator.h>

namespace executorch::extension::llm::jinja {
namespace {

/// A test that looks at its value only.
template <bool (*holds)(const Value&)>
Value of_value(const Call& call) {
  return Value::boolean(holds(call.self));
}

bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_text(const Value& value) {
  return value.as_text() != nullptr;
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_integer(const Value& value) {
  return value.get<int64_t>() != nullptr;
}
bool is_float(const Value& value) {
  return value.get<double>() != nullptr;
}
bool is_boolean(const Value& value) {
  return value.get<bool>() != nullptr;
}
bool is_the_true(const Value& value) {
  return is_boolean(value) && is_true(value);
}
bool is_the_false(const Value& value) {
  return is_boolean(value) && !is_true(value);
}
bool is_mapping(const Value& value) {
  return value.as_mapping() != nullptr;
}
bool is_callable(const Value& value) {
  if (value.is_undefined()) fail_unsupported("the test callable of an undefined value");
  return value.as_callable() != nullptr;
}
bool is_iterable(const Value& value) {
  return is_text(value) || is_mapping(value) || value.as_sequence() || value.is_undefined();
}
bool is_sequence(const Value& value) {
  const Sequence* const sequence = value.as_sequence();
  return is_text(value) || is_mapping(value) || value.is_undefined() ||
         (sequence != nullptr && sequence->kind <= SequenceKind::Range);
}

Value equals(const Call& call) {
  return Value::boolean(are_equal(call.self, *call.at[0], call.evaluator.budget()));
}
Value differs(const Call& call) {
  return Value::boolean(!are_equal(call.self, *call.at[0], call.evaluator.budget()));
}
Value is_below(const Call& call) {
  return Value::boolean(is_less(call.self, *call.at[0], call.evaluator.budget()));
}
Value is_above(const Call& call) {
  return Value::boolean(is_less(*call.at[0], call.self, call.evaluator.budget()));
}
Value is_at_most(const Call& call) {
  return Value::boolean(is_true(is_below(call)) || is_true(equals(call)));
}
Value is_at_least(const Call& call) {
  return Value::boolean(is_true(is_above(call)) || is_true(equals(call)));
}
Value is_in(const Call& call) {
  return Value::boolean(contains(*call.at[0], call.self, call.evaluator));
}

Value rest(const Call& call, const Value& divisor) {
  return arithmetic("%", call.self, divisor, call.evaluator);
}
Value is_divisible(const Call& call) {
  return Value::boolean(!is_true(rest(call, *call.at[0])));
}
Value is_even(const Call& call) {
  return Value::boolean(!is_true(rest(call, Value::integer(2))));
}
Value is_odd(const Call& call) {
  return Value::boolean(
      are_equal(rest(call, Value::integer(2)), Value::integer(1), call.evaluator.budget()));
}

Value is_same(const Call& call) {
  const Value& other = *call.at[0];
  const bool is_simple = other.is_none() || other.get<bool>() != nullptr;
  if (!is_simple) fail_unsupported("the test sameas, but for true, false and none");
  return Value::boolean(other.is_none()
                            ? call.self.is_none()
                            : is_boolean(call.self) && is_true(call.self) == is_true(other));
}

}  // namespace

const Function* find_test(std::string_view name) {
  static const std::vector<Function> table = {
      {"defined", {}, 0, of_value<is_defined>},
      {"undefined", {}, 0, of_value<is_undefined>},
      {"none", {}, 0, of_value<is_none>},
      {"string", {}, 0, of_value<is_text>},
      {"number", {}, 0, of_value<is_number>},
      {"integer", {}, 0, of_value<is_integer>},
      {"float", {}, 0, of_value<is_float>},
      {"boolean", {}, 0, of_value<is_boolean>},
      {"true", {}, 0, of_value<is_the_true>},
      {"false", {}, 0, of_value<is_the_false>},
      {"mapping", {}, 0, of_value<is_mapping>},
      {"callable", {}, 0, of_value<is_callable>},
      {"iterable", {}, 0, of_value<is_iterable>},
      {"sequence", {}, 0, of_value<is_sequence>},
      {"equalto", {"other"}, 1, equals},
      {"eq", {"other"}, 1, equals},
      {"==", {"other"}, 1, equals},
      {"ne", {"other"}, 1, differs},
      {"!=", {"other"}, 1, differs},
      {"lt", {"other"}, 1, is_below},
      {"lessthan", {"other"}, 1, is_below},
      {"<", {"other"}, 1, is_below},
      {"gt", {"other"}, 1, is_above},
      {"greaterthan", {"other"}, 1, is_above},
      {">", {"other"}, 1, is_above},
      {"le", {"other"}, 1, is_at_most},
      {"<=", {"other"}, 1, is_at_most},
      {"ge", {"other"}, 1, is_at_least},
      {">=", {"other"}, 1, is_at_least},
      {"in", {"seq"}, 1, is_in},
      {"divisibleby", {"num"}, 1, is_divisible},
      {"even", {}, 0, is_even},
      {"odd", {}, 0, is_odd},
      {"sameas", {"other"}, 1, is_same},
  };
  return find_in(table, name);
}

bool Evaluator::test(const std::string& name, const Value& value, const Arguments& given) {
  const Function* const found = find_test(name);
  if (found == nullptr) fail_unsupported("the test " + name);
  return is_true(jinja::run(*found, *this, value, given));
}

}  // namespace executorch::extension::llm::jinja
