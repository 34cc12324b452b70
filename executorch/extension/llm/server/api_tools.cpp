// The functions that a model may call, or has to.

#include <executorch/extension/llm/server/request_fields.h>

namespace executorch::extension::llm::server {
namespace {

/// Prefixes the references of `schema`, which are within the schema, with the place at which the
/// schema is put into another. `is_map` says that the members are schemas, not keywords.
void move_references(OrderedJson& schema, const std::string& place, bool is_map) {
  if (schema.is_array()) {
    for (OrderedJson& one : schema) move_references(one, place, false);
  }
  if (!schema.is_object()) return;
  for (auto& [name, value] : schema.items()) {
    if (!is_map && (name == "const" || name == "enum")) continue;
    if (!is_map && name == "$ref" && value.is_string()) {
      const std::string target = value;
      if (target.starts_with("#")) value = place + target.substr(1);
    } else {
      const bool has_schemas = name == "properties" || name == "$defs" || name == "definitions";
      move_references(value, place, !is_map && has_schemas);
    }
  }
}

/// The schema of a call of `function`, which is at `place` of the schema of all calls.
OrderedJson schema_of_call(const OrderedJson& function, const std::string& place,
                           const std::string& param) {
  OrderedJson arguments = function.value("parameters", OrderedJson::object());
  if (arguments.is_null()) arguments = OrderedJson::object();
  if (!arguments.is_object()) refuse(param + ".parameters", "an object is expected");
  if (!arguments.contains("type")) arguments["type"] = "object";
  if (arguments["type"] != "object") {
    refuse(param + ".parameters.type", "'object' is expected: arguments have names");
  }
  move_references(arguments, place + "/properties/arguments", false);
  OrderedJson call = {
      {"type", "object"}, {"required", {"name", "arguments"}}, {"additionalProperties", false}};
  call["properties"]["name"]["const"] = function.at("name");
  call["properties"]["arguments"] = std::move(arguments);
  return call;
}

/// The format of an answer that is one call, of the function with that name or, if it is empty, of
/// any.
ResponseFormat format_of_call(const OrderedJson& tools, const std::string& name) {
  OrderedJson calls = OrderedJson::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const OrderedJson& function = tools[i].at("function");
    const std::string param = "tools[" + std::to_string(i) + "].function";
    const std::string own_name = ::tokenizers::string_at(function, "name");
    if (own_name.empty()) refuse(param + ".name", "it is missing");
    if (!name.empty() && own_name != name) continue;
    calls.push_back(schema_of_call(function, "#/anyOf/" + std::to_string(calls.size()), param));
  }
  if (calls.empty()) refuse("tool_choice", "there is no function '" + name + "' in 'tools'");
  return {"json_schema", OrderedJson{{"anyOf", std::move(calls)}}.dump(), "tools"};
}

void check_tools(const Json& tools) {
  if (!tools.is_array()) refuse("tools", "an array is expected", "invalid_type");
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const bool is_function = tool.is_object() && tool.value("type", Json()) == "function" &&
                             tool.value("function", Json()).is_object();
    if (!is_function) {
      refuse("tools[" + std::to_string(i) + "]",
             "an object of type 'function', with a 'function', is expected");
    }
  }
}

/// The name of the only function that may be called, or "".
std::string chosen_name(const Json& choice) {
  const Json function = choice.is_object() && choice.value("type", Json()) == "function"
                            ? choice.value("function", Json())
                            : Json();
  const Json name = function.is_object() ? function.value("name", Json()) : Json();
  return name.is_string() ? name.get<std::string>() : "";
}

}  // namespace

void parse_tools(Fields& fields, const std::string& body, ApiRequest& request) {
  const Json tools = fields.take("tools"), choice = fields.take("tool_choice");
  const std::string name = chosen_name(choice);
  const bool is_forced = choice == "required" || !name.empty();
  if (!choice.is_null() && choice != "none" && choice != "auto" && !is_forced) {
    refuse("tool_choice",
           "'none', 'auto', 'required' or an object of type 'function', with a 'function' that has "
           "a 'name', is expected");
  }
  const bool has_tools = !tools.is_null() && tools != Json::array();
  if (is_forced && !has_tools) refuse("tool_choice", "it needs 'tools'");
  if (!has_tools) return;
  check_tools(tools);
  if (choice == "none") return;
  // The order of the request is kept: templates and constraints write members in it.
  const OrderedJson ordered = std::move(OrderedJson::parse(body).at("tools"));
  request.tools = ordered.dump();
  if (is_forced) request.format = format_of_call(ordered, name);
}

}  // namespace executorch::extension::llm::server
