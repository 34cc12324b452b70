#pragma once

#include <executorch/extension/llm/jinja/syntax.h>
#include <executorch/extension/llm/jinja/template.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::llm::jinja {

/// The state of a running loop. `loop` is no Value, so that it cannot be kept beyond the loop.
struct Loop {
  const std::vector<Value>* items = nullptr;
  size_t index = 0;
  std::optional<std::vector<Value>> last_changed;
};

struct Scope;

/// What `caller` is in a macro: the body of a {% call %}, and the scope that it stands in. Like
/// `loop` it is no Value, so that it cannot be kept beyond the call. No body: an ordinary call.
struct Caller {
  const Macro* body = nullptr;
  Scope* scope = nullptr;
};

/// The variables of a block with a scope of its own.
struct Scope {
  Scope* parent = nullptr;
  Loop* loop = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  /// Null in scopes that are not a macro's.
  const Caller* caller = nullptr;
};

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;
};

/// Renders one template once.
class Evaluator {
 public:
  Evaluator(const Mapping& variables, const Limits& limits)
      : variables_(variables), limits_(limits), budget_(limits.steps, limits.bytes) {}

  /// Throws Failure, with the line.
  std::string run(const Block& block);

  Budget& budget() { return budget_; }
  Value text(std::string value) {
    budget_.bytes(value.size());
    return Value::text(std::move(value));
  }
  Value list(std::vector<Value> items, SequenceKind kind = SequenceKind::List) {
    budget_.bytes(items.size() * Budget::kElement);
    return Value::sequence(std::move(items), kind);
  }
  std::string to_text(const Value& value) { return jinja::to_text(value, budget_); }

  Value filter(const std::string& name, const Value& value, const Arguments& given);
  bool test(const std::string& name, const Value& value, const Arguments& given);
  /// `value.name`; undefined if there is none.
  Value attribute(const Value& value, const std::string& name);
  /// `value[key]`; undefined if there is none.
  Value item(const Value& value, const Value& key);
  Value make_namespace(Mapping mapping);

 private:
  enum class Flow : uint8_t { Next, Break, Continue };
  /// Counts how deep calls of the evaluator are nested, including those through macros.
  class Nested;

  Flow execute(const Block& block, Scope& scope, std::string& output);
  Flow execute(const Statement& statement, Scope& scope, std::string& output);
  Flow execute_if(const Statement& statement, Scope& scope, std::string& output);
  void execute_for(const Statement& statement, Scope& scope, std::string& output);
  std::vector<Value> loop_items(const Statement& statement, Scope& scope);
  /// What the body writes, after the filters around it.
  Value evaluate_block(const Statement& statement, Scope& scope);
  Flow execute_with(const Statement& statement, Scope& scope, std::string& output);
  void append(std::string& output, std::string_view text) const;
  void assign(const Target& target, Value value, Scope& scope);
  /// Sets a variable. `name` points into the template.
  void set(std::string_view name, Value value, Scope& scope);

  Value evaluate(const Expression& expression, Scope& scope);
  Value evaluate_list(const Expression& expression, Scope& scope);
  Value evaluate_dict(const Expression& expression, Scope& scope);
  Value evaluate_slice(const Expression& expression, Scope& scope);
  Value evaluate_call(const Expression& expression, Scope& scope, const Caller& passed);
  Value evaluate_filter(const Expression& expression, Scope& scope, const Value* block);
  Value evaluate_concat(const Expression& expression, Scope& scope);
  Value evaluate_compare(const Expression& expression, Scope& scope);
  Value evaluate_conditional(const Expression& expression, Scope& scope);
  Value evaluate_member(const Expression& expression, Scope& scope);
  Value loop_member(Loop& loop, const std::string& name) const;
  Value call_loop(Loop& loop, const std::string& name, const Arguments& given);
  /// Runs a macro whose names are looked up in `around`.
  Value call_macro(const Macro& macro, const Arguments& given, Scope& around, const Caller& passed);
  static Caller caller_of(const Scope& scope);
  static bool is_in_macro(const Scope& scope);
  Arguments arguments_of(const Expression& expression, Scope& scope);
  Value look_up(const std::string& name, const Scope& scope);
  Loop* loop_of(const Expression& expression, Scope& scope) const;

  const Mapping& variables_;
  const Limits limits_;
  Budget budget_;
  Scope root_;
  std::deque<Mapping> namespaces_;
  uint32_t depth_ = 0;
  uint32_t line_ = 0;
};

/// Computes a + b, or with another operator: `name` is one of + - * / // % **. Fails where Python
/// does.
Value arithmetic(const std::string& name, const Value& a, const Value& b, Evaluator& evaluator);
Value negative(const Value& value);
/// `value in container`.
bool contains(const Value& container, const Value& value, Evaluator& evaluator);
/// value[start:stop:step]; a bound that is left out is none.
Value slice(const Value& value, const Value& start, const Value& stop, const Value& step,
            Evaluator& evaluator);

/// The arguments of a call of a built-in function, filter, test or method.
class Call {
 public:
  Call(Evaluator& caller, const Value& on, const Arguments& arguments)
      : evaluator(caller), self(on), given(arguments) {}
  Evaluator& evaluator;
  /// The value that a filter or test is applied to, or that a method belongs to.
  const Value& self;
  const Arguments& given;
  /// The arguments in the order of the function's parameters.
  std::vector<std::optional<Value>> at;

  bool has(size_t i) const { return at[i].has_value() && !at[i]->is_none(); }
  std::string text(size_t i, const std::string& otherwise = "") const;
  int64_t integer(size_t i, int64_t otherwise) const;
  bool boolean(size_t i, bool otherwise) const {
    return at[i].has_value() ? is_true(*at[i]) : otherwise;
  }
};

struct Function {
  const char* name;
  /// The names of the parameters. "*" stands for any number of arguments, which are in `given`.
  std::vector<const char*> parameters;
  size_t n_required;
  Value (*run)(const Call& call);
};
/// Null if there is no filter, test or function of that name.
const Function* find_filter(std::string_view name);
const Function* find_test(std::string_view name);
const Function* find_global(std::string_view name);
/// Fails for a method that Python has and that is not implemented here.
const Function* find_method(const Value& self, std::string_view name);
Value run(const Function& function, Evaluator& evaluator, const Value& self,
          const Arguments& given);

/// The function of that name in a table; null if there is none.
const Function* find_in(const std::vector<Function>& table, std::string_view name);
const std::vector<Function>& sequence_filters();
std::string json_text(const Value& value, const Call& call);
Value round_number(const Call& call);
/// Python's `text % values`, or `text % named`. Takes the result's bytes from the budget. Fails
/// where values are left that the text does not take, unless they `may_be_left`.
std::string formatted(std::string_view text, const Arguments& given, Evaluator& evaluator,
                      bool may_be_left = false);
/// Python's text.format(...), without formats behind a colon and parts of values.
std::string braces_filled(std::string_view text, const Arguments& given, Evaluator& evaluator);

}  // namespace executorch::extension::llm::jinja
