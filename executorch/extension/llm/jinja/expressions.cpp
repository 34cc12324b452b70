#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/nested.h>

namespace executorch::extension::llm::jinja {

using Kind = Expression::Kind;

Value Evaluator::evaluate(const Expression& expression, Scope& scope) {
  const Nested nested(*this);
  budget_.steps(1);
  line_ = expression.line;
  const auto operand = [&](size_t i) { return evaluate(*expression.operands[i], scope); };
  switch (expression.kind) {
    case Kind::Literal:
      return expression.value;
    case Kind::Name:
      return look_up(expression.name, scope);
    case Kind::List:
    case Kind::Tuple:
      return evaluate_list(expression, scope);
    case Kind::Dict:
      return evaluate_dict(expression, scope);
    case Kind::Attribute:
    case Kind::Item:
      return evaluate_member(expression, scope);
    case Kind::Slice:
      return evaluate_slice(expression, scope);
    case Kind::Call:
      return evaluate_call(expression, scope, Caller());
    case Kind::Filter:
    case Kind::Test:
      return evaluate_filter(expression, scope, nullptr);
    case Kind::Not:
      return Value::boolean(!is_true(operand(0)));
    case Kind::Negative:
      return negative(operand(0));
    case Kind::Positive: {
      const Value value = operand(0);
      if (!value.is_number()) fail(std::string("found + before ") + value.type_name());
      return value.get<bool>() ? Value::integer(value.to_integer()) : value;
    }
    case Kind::Arithmetic: {
      const Value left = operand(0);
      const Value right = operand(1);
      line_ = expression.line;
      return arithmetic(expression.name, left, right, *this);
    }
    case Kind::Concat:
      return evaluate_concat(expression, scope);
    case Kind::Compare:
      return evaluate_compare(expression, scope);
    case Kind::And: {
      Value left = operand(0);
      return is_true(left) ? operand(1) : left;
    }
    case Kind::Or: {
      Value left = operand(0);
      return is_true(left) ? left : operand(1);
    }
    case Kind::Conditional:
      return evaluate_conditional(expression, scope);
  }
  fail("found an expression of no known kind");
}

Value Evaluator::look_up(const std::string& name, const Scope& scope) {
  for (const Scope* one = &scope; one != nullptr; one = one->parent) {
    budget_.steps(one->variables.size());
    for (const auto& variable : one->variables) {
      if (variable.first == name) return variable.second;
    }
  }
  if (name == "caller" && caller_of(scope).body != nullptr) {
    return Value::callable({name, Value(), nullptr});
  }
  if (name == "loop" && scope.loop != nullptr) fail_unsupported("loop as a value");
  budget_.steps(variables_.items.size());
  if (const Value* const found = find(variables_, name)) return *found;
  if (find_global(name) != nullptr) return Value::callable({name, Value(), nullptr});
  if (name == "cycler" || name == "joiner" || name == "lipsum") {
    fail_unsupported("the function " + name);
  }
  if ((name == "varargs" || name == "kwargs") && is_in_macro(scope)) {
    fail_unsupported("further arguments of a macro, " + name);
  }
  return Value::undefined(name);
}

Value Evaluator::evaluate_list(const Expression& expression, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPtr& operand : expression.operands) {
    items.push_back(evaluate(*operand, scope));
  }
  return list(std::move(items),
              expression.kind == Kind::Tuple ? SequenceKind::Tuple : SequenceKind::List);
}

Value Evaluator::evaluate_dict(const Expression& expression, Scope& scope) {
  Mapping mapping;
  for (size_t i = 0; i < expression.operands.size(); i += 2) {
    Value key = evaluate(*expression.operands[i], scope);
    put(mapping, std::move(key), evaluate(*expression.operands[i + 1], scope), budget_);
  }
  return Value::mapping(std::move(mapping.items));
}

/// The loop that `loop` names if that is what a member is asked of.
Loop* Evaluator::loop_of(const Expression& expression, Scope& scope) const {
  const Expression& owner = *expression.operands[0];
  return owner.kind == Kind::Name && owner.name == "loop" ? scope.loop : nullptr;
}

Value Evaluator::evaluate_member(const Expression& expression, Scope& scope) {
  if (Loop* const loop = loop_of(expression, scope)) {
    if (expression.kind == Kind::Attribute) return loop_member(*loop, expression.name);
    return loop_member(*loop, to_text(evaluate(*expression.operands[1], scope)));
  }
  const Value owner = evaluate(*expression.operands[0], scope);
  if (expression.kind == Kind::Attribute) {
    line_ = expression.line;
    return attribute(owner, expression.name);
  }
  const Value key = evaluate(*expression.operands[1], scope);
  line_ = expression.line;
  return item(owner, key);
}

Value Evaluator::loop_member(Loop& loop, const std::string& name) const {
  const size_t n = loop.items->size();
  const auto integer = [](size_t value) { return Value::integer(static_cast<int64_t>(value)); };
  if (name == "index") return integer(loop.index + 1);
  if (name == "index0") return integer(loop.index);
  if (name == "revindex") return integer(n - loop.index);
  if (name == "revindex0") return integer(n - loop.index - 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(loop.index + 1 == n);
  if (name == "length") return integer(n);
  // Only recursive loops are deeper.
  if (name == "depth") return integer(1);
  if (name == "depth0") return integer(0);
  if (name == "previtem") {
    return loop.index == 0 ? Value::undefined(name) : (*loop.items)[loop.index - 1];
  }
  if (name == "nextitem") {
    return loop.index + 1 == n ? Value::undefined(name) : (*loop.items)[loop.index + 1];
  }
  if (name == "cycle" || name == "changed") fail_unsupported("a method of loop as a value");
  return Value::undefined(name);
}

Value Evaluator::call_loop(Loop& loop, const std::string& name, const Arguments& given) {
  if (!given.named.empty()) fail("loop." + name + " takes no values with names");
  if (name == "cycle") {
    if (given.values.empty()) fail("loop.cycle is given nothing; expected values");
    return given.values[loop.index % given.values.size()];
  }
  if (name != "changed") fail("loop." + name + " is no function");
  bool changed = !loop.last_changed || loop.last_changed->size() != given.values.size();
  for (size_t i = 0; !changed && i < given.values.size(); ++i) {
    changed = !are_equal((*loop.last_changed)[i], given.values[i], budget_);
  }
  loop.last_changed = given.values;
  return Value::boolean(changed);
}

Value Evaluator::evaluate_slice(const Expression& expression, Scope& scope) {
  const Value owner = evaluate(*expression.operands[0], scope);
  Value parts[3];
  for (size_t i = 0; i < 3; ++i) {
    if (const auto& part = expression.operands[i + 1]) parts[i] = evaluate(*part, scope);
  }
  line_ = expression.line;
  return slice(owner, parts[0], parts[1], parts[2], *this);
}

Arguments Evaluator::arguments_of(const Expression& expression, Scope& scope) {
  Arguments given;
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    given.values.push_back(evaluate(*expression.operands[i], scope));
  }
  const auto add = [&](const std::string& name, Value value) {
    budget_.steps(given.named.size());
    for (const auto& one : given.named) {
      if (one.first == name) fail("'" + name + "' is given twice");
    }
    given.named.emplace_back(name, std::move(value));
  };
  for (const auto& [name, expression_of_value] : expression.keywords) {
    Value value = evaluate(*expression_of_value, scope);
    if (name == "*") {
      for (Value& one : elements(value, budget_)) given.values.push_back(std::move(one));
    } else if (name == "**") {
      const Mapping* const members = value.as_mapping();
      if (members == nullptr) {
        fail(std::string("found ** before ") + value.type_name() + "; expected a mapping");
      }
      for (const auto& [key, member] : members->items) {
        if (key.as_text() == nullptr) fail("an argument's name is no text");
        add(*key.as_text(), member);
      }
    } else {
      add(name, std::move(value));
    }
  }
  return given;
}

/// What `caller` names in the macro that a scope is in.
Caller Evaluator::caller_of(const Scope& scope) {
  for (const Scope* one = &scope; one != nullptr; one = one->parent) {
    if (one->caller != nullptr) return *one->caller;
  }
  return {};
}

bool Evaluator::is_in_macro(const Scope& scope) {
  const Scope* one = &scope;
  while (one != nullptr && one->caller == nullptr) one = one->parent;
  return one != nullptr;
}

Value Evaluator::evaluate_call(const Expression& expression, Scope& scope, const Caller& passed) {
  const Expression& callee = *expression.operands[0];
  if (callee.kind == Kind::Attribute) {
    if (Loop* const loop = loop_of(callee, scope)) {
      return call_loop(*loop, callee.name, arguments_of(expression, scope));
    }
  }
  if (callee.kind == Kind::Name && callee.name == "caller") {
    const Caller caller = caller_of(scope);
    if (caller.body != nullptr) {
      return call_macro(*caller.body, arguments_of(expression, scope), *caller.scope, passed);
    }
  }
  const Value function = evaluate(callee, scope);
  const Arguments given = arguments_of(expression, scope);
  line_ = expression.line;
  const Callable* const callable = function.as_callable();
  if (callable == nullptr) {
    const auto* const undefined = function.get<Value::Undefined>();
    fail(undefined != nullptr && undefined->name != nullptr
             ? "'" + *undefined->name + "' is undefined and cannot be called"
             : std::string("found ") + function.type_name() + "; expected a function");
  }
  if (callable->macro != nullptr) return call_macro(*callable->macro, given, root_, passed);
  if (passed.body != nullptr) fail("'" + callable->name + "' is no macro, and takes no caller");
  const Function* const known = callable->self.is_none()
                                    ? find_global(callable->name)
                                    : find_method(callable->self, callable->name);
  if (known == nullptr && callable->name == "caller") fail_unsupported("caller as a value");
  if (known == nullptr) fail("'" + callable->name + "' is no function");
  return jinja::run(*known, *this, callable->self, given);
}

Value Evaluator::evaluate_filter(const Expression& expression, Scope& scope, const Value* block) {
  // Filters of a block end at what the block wrote, for which nothing stands.
  Value value;
  if (expression.operands[0] == nullptr) {
    if (block == nullptr) fail("found a filter of nothing");
    value = *block;
  } else if (block != nullptr && (expression.operands[0]->kind == Kind::Filter)) {
    value = evaluate_filter(*expression.operands[0], scope, block);
  } else {
    value = evaluate(*expression.operands[0], scope);
  }
  const Arguments given = arguments_of(expression, scope);
  line_ = expression.line;
  return expression.kind == Kind::Filter ? filter(expression.name, value, given)
                                         : Value::boolean(test(expression.name, value, given));
}

Value Evaluator::evaluate_concat(const Expression& expression, Scope& scope) {
  std::string joined;
  for (const ExpressionPtr& operand : expression.operands) {
    joined += to_text(evaluate(*operand, scope));
  }
  return text(std::move(joined));
}

Value Evaluator::evaluate_compare(const Expression& expression, Scope& scope) {
  Value left = evaluate(*expression.operands[0], scope);
  for (size_t i = 0; i < expression.names.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1], scope);
    line_ = expression.line;
    const std::string& name = expression.names[i];
    bool holds = false;
    if (name == "==" || name == "!=") {
      holds = are_equal(left, right, budget_) == (name == "==");
    } else if (name == "in" || name == "not in") {
      holds = contains(right, left, *this) == (name == "in");
    } else if (name == "<" || name == ">") {
      holds = name == "<" ? is_less(left, right, budget_) : is_less(right, left, budget_);
    } else {
      holds = (name == "<=" ? is_less(left, right, budget_) : is_less(right, left, budget_)) ||
              are_equal(left, right, budget_);
    }
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Evaluator::evaluate_conditional(const Expression& expression, Scope& scope) {
  if (is_true(evaluate(*expression.operands[1], scope))) {
    return evaluate(*expression.operands[0], scope);
  }
  return expression.operands[2] == nullptr ? Value::undefined()
                                           : evaluate(*expression.operands[2], scope);
}

Value Evaluator::attribute(const Value& value, const std::string& name) {
  if (const auto* const undefined = value.get<Value::Undefined>()) {
    fail("'" + (undefined->name == nullptr ? "" : *undefined->name) +
         "' is undefined and has no '" + name + "'");
  }
  if (value.as_callable() != nullptr) fail_unsupported("attributes of functions");
  if (const Value::Space* const space = value.get<Value::Space>()) {
    const Value* const found = find(**space, name);
    budget_.steps((*space)->items.size());
    return found == nullptr ? Value::undefined(name) : *found;
  }
  if (const Sequence* const sequence = value.as_sequence(); sequence && sequence->is_group) {
    if (name == "grouper") return sequence->items[0];
    if (name == "list") return sequence->items[1];
  }
  if (find_method(value, name) != nullptr) return Value::callable({name, value, nullptr});
  if (const Mapping* const mapping = value.as_mapping()) {
    budget_.steps(mapping->items.size());
    if (const Value* const found = find(*mapping, name)) return *found;
  }
  return Value::undefined(name);
}

Value Evaluator::item(const Value& value, const Value& key) {
  if (value.is_undefined()) return attribute(value, to_text(key));
  if (const Mapping* const mapping = value.as_mapping()) {
    const bool can_be_key = key.as_mapping() == nullptr && key.as_sequence() == nullptr;
    if (!can_be_key) return Value::undefined();
    if (const Value* const found = find(*mapping, key, budget_)) return *found;
  }
  if (key.as_text() != nullptr) return attribute(value, *key.as_text());
  if (!key.is_integer()) return Value::undefined();
  const Sequence* const sequence = value.as_sequence();
  const bool has_places = sequence != nullptr && (sequence->kind == SequenceKind::List ||
                                                  sequence->kind == SequenceKind::Tuple ||
                                                  sequence->kind == SequenceKind::Range);
  if (!has_places && value.as_text() == nullptr) return Value::undefined();
  const int64_t n = length(value, budget_);
  const int64_t at = key.to_integer() < 0 ? key.to_integer() + n : key.to_integer();
  if (at < 0 || at >= n) return Value::undefined(std::to_string(at));
  if (has_places) return sequence->items[static_cast<size_t>(at)];
  return slice(value, Value::integer(at), Value::integer(at + 1), Value(), *this);
}

}  // namespace executorch::extension::llm::jinja
