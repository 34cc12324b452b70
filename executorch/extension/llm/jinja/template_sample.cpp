// Renders templates for tests/chat_templates.
//
// Reads jobs from stdin, a JSON object in each line, and answers each with one:
//   template    Jinja text
//   variables   an object
// Answer: text, or error.

#include <executorch/extension/llm/jinja/template.h>
#include <executorch/extension/llm/tokenizers/json.h>

#include <iostream>

using executorch::extension::llm::jinja::Template;
using executorch::extension::llm::jinja::Value;
using Json = ::tokenizers::Json;

namespace {

Value value_of(const Json& json) {
  if (json.is_boolean()) return Value::boolean(json.get<bool>());
  if (json.is_number_integer()) return Value::integer(json.get<int64_t>());
  if (json.is_number()) return Value::number(json.get<double>());
  if (json.is_string()) return Value::text(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(value_of(item));
    return Value::sequence(std::move(items));
  }
  if (json.is_object()) {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, item] : json.items()) {
      items.emplace_back(Value::text(key), value_of(item));
    }
    return Value::mapping(std::move(items));
  }
  return Value();
}

Json answer(const Json& job) {
  std::string cause;
  const auto read = Template::parse(job["template"].get<std::string>(), cause);
  std::optional<std::string> text;
  const Value variables = value_of(job["variables"]);
  if (read.has_value()) text = read->render(*variables.as_mapping(), cause);
  Json made = Json::object();
  made[text.has_value() ? "text" : "error"] = text.has_value() ? *text : cause;
  return made;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    // Texts that are no UTF-8 cannot be in JSON.
    std::cout << answer(Json::parse(line)).dump(-1, ' ', true, Json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
