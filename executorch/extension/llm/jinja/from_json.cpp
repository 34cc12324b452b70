#include <executorch/extension/llm/jinja/from_json.h>

#include <cstdint>

namespace executorch::extension::llm::jinja {

using Json = ::tokenizers::Json;

Value value_of(const Json& json) {
  if (json.is_boolean()) return Value::boolean(json.get<bool>());
  // Larger ones are floats, as those of more than 64 bits are for the parser.
  const bool is_large = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX;
  if (json.is_number_integer() && !is_large) return Value::integer(json.get<int64_t>());
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

}  // namespace executorch::extension::llm::jinja
