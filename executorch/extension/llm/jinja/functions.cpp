// Calls of what the language has: the order of arguments, and the functions that belong to nothing.
#include <executorch/extension/llm/jinja/evaluator.h>

#include <algorithm>
#include <ctime>

namespace executorch::extension::llm::jinja {
namespace {

constexpr int64_t kLongestRange = 100000;

int64_t whole(const Call& call, size_t i) {
  if (!call.at[i]->is_integer()) {
    fail(std::string("range is given ") + call.at[i]->type_name() + "; expected an int");
  }
  return call.at[i]->to_integer();
}

Value range(const Call& call) {
  const bool has_start = call.at[1].has_value();
  const int64_t start = has_start ? whole(call, 0) : 0;
  const int64_t stop = has_start ? whole(call, 1) : whole(call, 0);
  const int64_t step = call.at[2].has_value() ? whole(call, 2) : 1;
  if (step == 0) fail("the step of a range is 0");
  std::vector<Value> items;
  for (int64_t i = start; step < 0 ? i > stop : i < stop;) {
    if (items.size() == kLongestRange) {
      fail("a range has more than " + std::to_string(kLongestRange) + " numbers");
    }
    items.push_back(Value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return call.evaluator.list(std::move(items), SequenceKind::Range);
}

Mapping mapping_of(const Call& call) {
  Mapping mapping;
  Budget& budget = call.evaluator.budget();
  if (call.given.values.size() > 1) fail("found two values; expected one mapping");
  if (!call.given.values.empty()) {
    const Value& given = call.given.values[0];
    if (const Mapping* const other = given.as_mapping()) {
      for (const auto& [key, value] : other->items) put(mapping, key, value, budget);
    } else {
      for (const Value& pair : elements(given, budget)) {
        std::vector<Value> parts = elements(pair, budget);
        if (parts.size() != 2) fail("a member is no pair of key and value");
        put(mapping, std::move(parts[0]), std::move(parts[1]), budget);
      }
    }
  }
  for (const auto& [name, value] : call.given.named) put(mapping, Value::text(name), value, budget);
  return mapping;
}

Value dict(const Call& call) {
  return Value::mapping(mapping_of(call).items);
}

Value make_namespace(const Call& call) {
  return call.evaluator.make_namespace(mapping_of(call));
}

Value raise_exception(const Call& call) {
  fail(call.evaluator.to_text(*call.at[0]));
}

Value strftime_now(const Call& call) {
  const std::string format = call.text(0);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (localtime_r(&now, &parts) == nullptr) fail("the time is not known");
  if (format.size() > 1000) fail("the format of a time has more than 1000 characters");
  std::string text(format.size() * 32 + 64, '\0');
  text.resize(std::strftime(text.data(), text.size(), format.c_str(), &parts));
  return call.evaluator.text(std::move(text));
}

size_t place_of(const Function& function, const std::string& name) {
  const auto found = std::find(function.parameters.begin(), function.parameters.end(), name);
  if (found == function.parameters.end()) {
    fail(std::string(function.name) + " has no parameter '" + name + "'");
  }
  return static_cast<size_t>(found - function.parameters.begin());
}

}  // namespace

std::string Call::text(size_t i, const std::string& otherwise) const {
  if (!has(i)) return otherwise;
  if (at[i]->as_text() == nullptr) {
    fail(std::string("a value is ") + at[i]->type_name() + "; expected a text");
  }
  evaluator.budget().copy(at[i]->as_text()->size());
  return *at[i]->as_text();
}

int64_t Call::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  if (!at[i]->is_integer()) {
    fail(std::string("a value is ") + at[i]->type_name() + "; expected an int");
  }
  return at[i]->to_integer();
}

const Function* find_in(const std::vector<Function>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Function& one) { return name == one.name; });
  return found == table.end() ? nullptr : &*found;
}

const Function* find_global(std::string_view name) {
  static const std::vector<Function> table = {
      {"range", {"start", "stop", "step"}, 1, range},
      {"dict", {"*"}, 0, dict},
      {"namespace", {"*"}, 0, make_namespace},
      {"raise_exception", {"message"}, 1, raise_exception},
      {"strftime_now", {"format"}, 1, strftime_now},
  };
  return find_in(table, name);
}

Value run(const Function& function, Evaluator& evaluator, const Value& self,
          const Arguments& given) {
  Call call(evaluator, self, given);
  if (!function.parameters.empty() && function.parameters[0] == std::string_view("*")) {
    return function.run(call);
  }
  call.at.resize(function.parameters.size());
  if (given.values.size() > call.at.size()) {
    fail(std::string(function.name) + " is given " + std::to_string(given.values.size()) +
         " values; expected at most " + std::to_string(call.at.size()));
  }
  for (size_t i = 0; i < given.values.size(); ++i) call.at[i] = given.values[i];
  for (const auto& [name, value] : given.named) {
    const size_t i = place_of(function, name);
    if (call.at[i].has_value()) fail(std::string(function.name) + " is given '" + name + "' twice");
    call.at[i] = value;
  }
  for (size_t i = 0; i < function.n_required; ++i) {
    if (!call.at[i].has_value()) {
      fail(std::string(function.name) + " is not given '" + function.parameters[i] + "'");
    }
  }
  return function.run(call);
}

}  // namespace executorch::extension::llm::jinja
