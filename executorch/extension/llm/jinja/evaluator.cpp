// Statements: what runs, in which order, with which variables.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/nested.h>

#include <algorithm>

namespace executorch::extension::llm::jinja {

std::string Evaluator::run(const Block& block) {
  try {
    std::string output;
    execute(block, root_, output);
    return output;
  } catch (Failure& failure) {
    if (failure.line == 0) failure.line = line_;
    throw;
  }
}

void Evaluator::append(std::string& output, std::string_view text) const {
  if (text.size() > limits_.output_bytes - std::min(limits_.output_bytes, output.size())) {
    fail("the output has more than " + std::to_string(limits_.output_bytes) + " bytes");
  }
  output += text;
}

Evaluator::Flow Evaluator::execute(const Block& block, Scope& scope, std::string& output) {
  const Nested nested(*this);
  for (const Statement& statement : block) {
    const Flow flow = execute(statement, scope, output);
    if (flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, Scope& scope, std::string& output) {
  using Kind = Statement::Kind;
  budget_.steps(1);
  line_ = statement.line;
  switch (statement.kind) {
    case Kind::Text:
      append(output, statement.text);
      break;
    case Kind::Output:
      append(output, to_text(evaluate(*statement.expression, scope)));
      break;
    case Kind::If:
      return execute_if(statement, scope, output);
    case Kind::For:
      execute_for(statement, scope, output);
      break;
    case Kind::Set:
      assign(statement.target, evaluate(*statement.expression, scope), scope);
      break;
    case Kind::SetBlock:
      assign(statement.target, evaluate_block(statement, scope), scope);
      break;
    case Kind::Filter: {
      const Value value = evaluate_block(statement, scope);
      if (value.as_text() == nullptr) {
        fail(std::string("a block's filter gives ") + value.type_name() + "; expected a text");
      }
      append(output, *value.as_text());
      break;
    }
    case Kind::Group: {
      Scope inner{&scope, scope.loop, {}};
      return execute(statement.body, inner, output);
    }
    case Kind::Macro:
      set(statement.macro->name,
          Value::callable({statement.macro->name, Value(), statement.macro.get()}), scope);
      break;
    case Kind::Call:
      append(output, to_text(evaluate_call(*statement.expression, scope,
                                           Caller{statement.macro.get(), &scope})));
      break;
    case Kind::With:
      return execute_with(statement, scope, output);
    case Kind::Break:
      return Flow::Break;
    case Kind::Continue:
      return Flow::Continue;
  }
  return Flow::Next;
}

Evaluator::Flow Evaluator::execute_if(const Statement& statement, Scope& scope,
                                      std::string& output) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition == nullptr || is_true(evaluate(*branch.condition, scope))) {
      return execute(branch.body, scope, output);
    }
  }
  return Flow::Next;
}

std::vector<Value> Evaluator::loop_items(const Statement& statement, Scope& scope) {
  std::vector<Value> items = elements(evaluate(*statement.expression, scope), budget_);
  if (statement.condition == nullptr) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    Scope inner{&scope, scope.loop, {}};
    assign(statement.target, item, inner);
    if (is_true(evaluate(*statement.condition, inner))) kept.push_back(std::move(item));
  }
  return kept;
}

void Evaluator::execute_for(const Statement& statement, Scope& scope, std::string& output) {
  const std::vector<Value> items = loop_items(statement, scope);
  Loop loop;
  loop.items = &items;
  bool reached_end = false;
  for (; loop.index < items.size(); ++loop.index) {
    budget_.steps(1);
    Scope inner{&scope, &loop, {}};
    assign(statement.target, items[loop.index], inner);
    const Flow flow = execute(statement.body, inner, output);
    reached_end = reached_end || flow == Flow::Next;
    if (flow == Flow::Break) break;
  }
  // As Jinja has it: also where every round was left early.
  if (!reached_end) {
    Scope inner{&scope, scope.loop, {}};
    execute(statement.otherwise, inner, output);
  }
}

Value Evaluator::evaluate_block(const Statement& statement, Scope& scope) {
  std::string output;
  Scope inner{&scope, scope.loop, {}};
  execute(statement.body, inner, output);
  const Value value = text(std::move(output));
  return statement.expression == nullptr ? value
                                         : evaluate_filter(*statement.expression, inner, &value);
}

Evaluator::Flow Evaluator::execute_with(const Statement& statement, Scope& scope,
                                        std::string& output) {
  Scope inner{&scope, scope.loop, {}};
  for (const auto& [target, expression] : statement.assignments) {
    assign(target, evaluate(*expression, scope), inner);
  }
  return execute(statement.body, inner, output);
}

void Evaluator::set(std::string_view name, Value value, Scope& scope) {
  budget_.steps(1 + scope.variables.size());
  for (auto& variable : scope.variables) {
    if (variable.first != name) continue;
    variable.second = std::move(value);
    return;
  }
  scope.variables.emplace_back(name, std::move(value));
}

void Evaluator::assign(const Target& target, Value value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value space = look_up(target.names[0], scope);
    if (space.get<Value::Space>() == nullptr) {
      fail("'" + target.names[0] + "' is " + space.type_name() +
           "; expected a namespace, of which attributes can be set");
    }
    put(**space.get<Value::Space>(), text(target.attribute), std::move(value), budget_);
    return;
  }
  if (!target.is_tuple) {
    set(target.names[0], std::move(value), scope);
    return;
  }
  std::vector<Value> parts = elements(value, budget_);
  if (value.is_undefined() || parts.size() != target.names.size()) {
    fail("found " + std::to_string(parts.size()) + " values; expected " +
         std::to_string(target.names.size()) + ", one for each name");
  }
  for (size_t i = 0; i < parts.size(); ++i) set(target.names[i], std::move(parts[i]), scope);
}

Value Evaluator::make_namespace(Mapping mapping) {
  namespaces_.push_back(std::move(mapping));
  budget_.bytes(2 * Budget::kElement);
  return Value::space(&namespaces_.back());
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& given, Scope& around,
                            const Caller& passed) {
  const Nested nested(*this);
  if (given.values.size() > macro.parameters.size()) {
    fail("the macro " + macro.name + " is given " + std::to_string(given.values.size()) +
         " values; expected at most " + std::to_string(macro.parameters.size()));
  }
  budget_.steps(macro.parameters.size() * (1 + given.named.size()));
  if (passed.body != nullptr && !macro.uses_caller) {
    fail("the macro " + macro.name + " is called by a block, and does not use its caller");
  }
  Scope inner{&around, around.loop, {}, &passed};
  const size_t n_without_default = macro.parameters.size() - macro.defaults.size();
  size_t n_named = 0;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto named = std::find_if(given.named.begin(), given.named.end(), [&](const auto& one) {
      return one.first == macro.parameters[i];
    });
    Value value;
    if (named != given.named.end()) {
      if (i < given.values.size()) fail("'" + macro.parameters[i] + "' is given twice");
      value = named->second;
      ++n_named;
    } else if (i < given.values.size()) {
      value = given.values[i];
    } else if (i >= n_without_default) {
      value = evaluate(*macro.defaults[i - n_without_default], inner);
    } else {
      value = Value::undefined(macro.parameters[i]);
    }
    inner.variables.emplace_back(macro.parameters[i], std::move(value));
  }
  if (n_named != given.named.size()) {
    fail("the macro " + macro.name + " has no parameter '" + given.named[0].first +
         "', or another that is named");
  }
  std::string output;
  execute(macro.body, inner, output);
  return text(std::move(output));
}

}  // namespace executorch::extension::llm::jinja
