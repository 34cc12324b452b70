// The messages of a conversation.

#include <executorch/extension/llm/sampler/constraint/json_shape.h>
#include <executorch/extension/llm/server/request_fields.h>

namespace executorch::extension::llm::server {
namespace {

std::string text_of_content(const Json& content, const std::string& param) {
  if (content.is_string()) return content;
  if (!content.is_array()) refuse(param, "a string or an array of parts is expected");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const std::string place = param + "[" + std::to_string(i) + "]";
    if (!part.is_object() || part.value("type", Json()) != "text") {
      refuse(place, "only parts of type 'text' are supported", "unsupported_value");
    }
    if (!part.contains("text") || !part["text"].is_string()) refuse(place, "it has no text");
    text += part["text"];
  }
  return text;
}

/// A string member of an object, or "".
std::string string_of(const Json& object, const char* name, const std::string& param) {
  const Json value = object.value(name, Json());
  if (value.is_null()) return "";
  if (!value.is_string()) refuse(param + "." + name, "a string is expected", "invalid_type");
  return value;
}

/// The arguments of a call, which clients send as the text of a JSON object, as JSON: templates
/// write its members.
OrderedJson parse_arguments(const std::string& text, const std::string& param) {
  if (text.empty()) return OrderedJson::object();
  OrderedJson json = constraint::json_shape(text, kMaxDepth).depth > kMaxDepth
                         ? OrderedJson()
                         : OrderedJson::parse(text, nullptr, false);
  if (!json.is_object()) refuse(param, "the text of a JSON object is expected");
  return json;
}

/// The calls of an answer that a client sends back.
OrderedJson parse_calls(const Json& calls, const std::string& param) {
  if (!calls.is_array()) refuse(param, "an array is expected", "invalid_type");
  OrderedJson result = OrderedJson::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string place = param + "[" + std::to_string(i) + "]";
    const Json function = calls[i].is_object() ? calls[i].value("function", Json()) : Json();
    if (!function.is_object()) refuse(place, "an object with a 'function' is expected");
    const std::string in_function = place + ".function";
    const std::string name = string_of(function, "name", in_function);
    if (name.empty()) refuse(in_function + ".name", "it is missing");
    const std::string arguments = string_of(function, "arguments", in_function);
    OrderedJson call = OrderedJson::object(), called = OrderedJson::object();
    called["name"] = name;
    called["arguments"] = parse_arguments(arguments, in_function + ".arguments");
    call["id"] = string_of(calls[i], "id", place);
    call["type"] = "function";
    call["function"] = std::move(called);
    result.push_back(std::move(call));
  }
  return result;
}

/// What a message has beside its role and content, for templates.
OrderedJson parse_more(const Json& message, const std::string& role, const std::string& place) {
  OrderedJson more = OrderedJson::object();
  if (role == "assistant") {
    const std::string thoughts = string_of(message, "reasoning_content", place);
    if (!thoughts.empty()) more["reasoning_content"] = thoughts;
    const Json calls = message.value("tool_calls", Json());
    if (!calls.is_null() && calls != Json::array()) {
      more["tool_calls"] = parse_calls(calls, place + ".tool_calls");
    }
  } else if (role == "tool") {
    for (const char* name : {"tool_call_id", "name"}) {
      const std::string value = string_of(message, name, place);
      if (!value.empty()) more[name] = value;
    }
  }
  return more;
}

}  // namespace

void parse_messages(const Json& messages, ApiRequest& request) {
  if (!messages.is_array() || messages.empty()) {
    refuse("messages", "an array with at least one message is expected", "invalid_type");
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string place = "messages[" + std::to_string(i) + "]";
    const Json& message = messages[i];
    if (!message.is_object()) refuse(place, "an object is expected", "invalid_type");
    std::string role = message.contains("role") && message["role"].is_string()
                           ? message["role"].get<std::string>()
                           : std::string();
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
      refuse(place + ".role", "'system', 'developer', 'user', 'assistant' or 'tool' is expected");
    }
    const OrderedJson more = parse_more(message, role, place);
    const bool has_calls = more.contains("tool_calls");
    request.has_calls = request.has_calls || has_calls || role == "tool";
    // An answer that calls functions need not say anything.
    const Json content = message.value("content", Json());
    const bool is_silent = content.is_null() && role == "assistant" && has_calls;
    request.messages.push_back(
        {role, is_silent ? "" : text_of_content(content, place + ".content"),
         more.empty() ? "" : more.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)});
  }
}

}  // namespace executorch::extension::llm::server
