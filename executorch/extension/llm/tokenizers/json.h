#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace tokenizers {

using Json = nlohmann::json;

/// What `key` holds, or `otherwise` where there is nothing of that type.
inline std::string string_at(const Json& object, const char* key,
                             const std::string& otherwise = "") {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}
inline bool bool_at(const Json& object, const char* key, bool otherwise) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}
inline const Json& at(const Json& object, const char* key) {
  static const Json nothing;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() ? *found : nothing;
}

/// The text or regular expression of `{"String": ...}` or `{"Regex": ...}`, as a pattern.
struct TextPattern {
  std::string text;
  bool is_regex = false;
};
inline TextPattern pattern_at(const Json& object, const char* key) {
  const Json& pattern = at(object, key);
  if (pattern.is_string()) {
    return {pattern.get<std::string>(), false};
  }
  const std::string regex = string_at(pattern, "Regex");
  return regex.empty() ? TextPattern{string_at(pattern, "String"), false}
                       : TextPattern{regex, true};
}

}  // namespace tokenizers
