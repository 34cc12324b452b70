#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace tokenizers {

/// The members of an object in the order of the file. Vocabularies have 10^5 of them and are read
/// from one end to the other: keeping them sorted, or asking of each whether it was there before,
/// takes three times as long. Lookups walk, and find the last one of a name.
template <class Key, class Value, class Compare, class Allocator>
struct Members : nlohmann::ordered_map<Key, Value, Compare, Allocator> {
  using nlohmann::ordered_map<Key, Value, Compare, Allocator>::ordered_map;

  /// Adds one, whatever is there: what a parser does.
  template <class Name>
  Value& operator[](Name&& name) {
    return this->emplace_back(std::forward<Name>(name), Value()).second;
  }
  template <class Name>
  auto find(const Name& name) {
    return last(*this, name);
  }
  template <class Name>
  auto find(const Name& name) const {
    return last(*this, name);
  }

 private:
  template <class Self, class Name>
  static auto last(Self& self, const Name& name) {
    const auto found = std::find_if(self.rbegin(), self.rend(),
                                    [&](const auto& member) { return member.first == name; });
    return found == self.rend() ? self.end() : std::prev(found.base());
  }
};

using Json = nlohmann::basic_json<Members>;

/// What `key` holds, or `otherwise` where there is nothing of that type.
inline std::string string_at(const Json& object, const char* key,
                             const std::string& otherwise = "") {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : otherwise;
}
/// Json that is made in C++ has signed numbers.
inline bool is_count(const Json& value) {
  return value.is_number_integer() && value >= 0;
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
  if (pattern.is_string()) return {pattern.get<std::string>(), false};
  const std::string regex = string_at(pattern, "Regex");
  if (!regex.empty()) return {regex, true};
  // An empty text stands between all characters, as an expression that matches nothing does.
  const Json& text = at(pattern, "String");
  return text == "" ? TextPattern{"(?:)", true} : TextPattern{string_at(pattern, "String"), false};
}

}  // namespace tokenizers
