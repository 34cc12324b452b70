// Strings, arrays and objects.

#include <executorch/extension/llm/sampler/constraint/code_points.h>
#include <executorch/extension/llm/sampler/constraint/json_compiler.h>
#include <executorch/extension/llm/sampler/constraint/regex.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace executorch::extension::llm::constraint {
namespace {

constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

#define ET_DATE                                                     \
  "(?:[1-9]\\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])"   \
  "|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))" \
  "|(?:[1-9]\\d(?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29)"
#define ET_TIME                                          \
  "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?" \
  "(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define ET_BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

const std::map<std::string, const char*> kFormats = {
    {"date", ET_DATE},
    {"time", ET_TIME},
    {"date-time", ET_DATE "T" ET_TIME},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"ipv4", ET_BYTE "(?:\\." ET_BYTE "){3}"},
    {"email",
     "[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
     "(?:\\.[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)+"}};

/// The names that `required` lists.
std::vector<std::string> required_names(const Json& schema, const std::string& pointer) {
  std::vector<std::string> names;
  const auto found = schema.find("required");
  if (found == schema.end()) return names;
  const std::string place = child(pointer, "required");
  if (!found->is_array()) fail_at(place, "an array is expected");
  for (const Json& name : *found) {
    if (!name.is_string()) fail_at(place, "names are expected");
    names.push_back(name);
  }
  return names;
}

}  // namespace

State JsonCompiler::add_quoted(State from, const std::string& text) {
  from = builder_.add_text(from, "\"");
  for (const uint32_t c : decode_utf8(text)) {
    const State to = builder_.add_state();
    add_json_character(builder_, from, to, CodePointSet{{c, c}});
    from = to;
  }
  return builder_.add_text(from, "\"");
}

void JsonCompiler::add_string(State from, State to, const Json& schema,
                              const std::string& pointer) {
  const State quote = builder_.add_state();
  builder_.add_byte(quote, to, '"');
  from = builder_.add_text(from, "\"");
  const uint64_t min = size_keyword(schema, "minLength", 0, pointer);
  const uint64_t max = size_keyword(schema, "maxLength", kUnbounded, pointer);
  const bool counted = min != 0 || max != kUnbounded;
  for (const char* keyword : {"pattern", "format"}) {
    if (!schema.contains(keyword)) continue;
    const std::string place = child(pointer, keyword);
    if (counted || (schema.contains("pattern") && schema.contains("format"))) {
      fail_at(place, "not supported beside minLength, maxLength, pattern or format");
    }
    if (!schema[keyword].is_string()) fail_at(place, "a string is expected");
    try {
      if (keyword == std::string("pattern")) {
        return Regex(schema[keyword].get<std::string>())
            .add_anywhere(builder_, from, quote, add_json_character);
      }
      const auto format = kFormats.find(schema[keyword].get<std::string>());
      if (format == kFormats.end()) throw Unusable("this format is not supported");
      return Regex(format->second).add_whole(builder_, from, quote, add_json_character);
    } catch (const Unusable& error) {
      fail_at(place, error.what());
    }
  }
  if (min > max) return;
  if (max != kUnbounded && max > NfaBuilder::kMaxStates) {
    fail_at(child(pointer, "maxLength"), "too large");
  }
  const CodePointSet any = CodePointSet::all();
  for (uint64_t i = 0; i < (max == kUnbounded ? min : max); ++i) {
    if (i >= min) builder_.add_epsilon(from, quote);
    const State next = builder_.add_state();
    add_json_character(builder_, from, next, any);
    from = next;
  }
  if (max == kUnbounded) {
    const State loop = builder_.add_state();
    builder_.add_epsilon(from, loop);
    add_json_character(builder_, loop, loop, any);
    from = loop;
  }
  builder_.add_epsilon(from, quote);
}

/// Builds a trie of the names. A string that leaves the trie may go on with anything.
void JsonCompiler::add_other_string(State from, State to, const std::vector<std::string>& names) {
  struct Node {
    std::map<uint32_t, size_t> next;
    bool is_name = false;
  };
  std::vector<Node> tree(1);
  for (const std::string& name : names) {
    size_t at = 0;
    for (const uint32_t c : decode_utf8(name)) {
      const auto [found, added] = tree[at].next.try_emplace(c, tree.size());
      at = found->second;
      if (added) tree.emplace_back();
    }
    tree[at].is_name = true;
  }
  const State other = builder_.add_state();
  add_json_character(builder_, other, other, CodePointSet::all());
  builder_.add_byte(other, to, '"');
  std::vector<State> states{builder_.add_text(from, "\"")};
  while (states.size() < tree.size()) states.push_back(builder_.add_state());
  for (size_t i = 0; i < tree.size(); ++i) {
    CodePointSet known;
    for (const auto& [c, next] : tree[i].next) {
      known.add(c, c);
      add_json_character(builder_, states[i], states[next], CodePointSet{{c, c}});
    }
    add_json_character(builder_, states[i], other, known.complement());
    if (!tree[i].is_name) builder_.add_byte(states[i], to, '"');
  }
}

void JsonCompiler::add_array(State from, State to, const Json& schema, const std::string& pointer) {
  const Json prefix = schema.value("prefixItems", Json::array());
  const Json items = schema.contains("items") ? schema["items"] : Json(true);
  if (!prefix.is_array()) fail_at(child(pointer, "prefixItems"), "an array is expected");
  const std::string items_at = child(pointer, "items");
  check_keywords(items, items_at);
  const uint64_t min = size_keyword(schema, "minItems", 0, pointer);
  uint64_t max = size_keyword(schema, "maxItems", kUnbounded, pointer);
  if (items == false) max = std::min<uint64_t>(max, prefix.size());
  if (min > max) return;
  const State close = builder_.add_state();
  builder_.add_byte(close, to, ']');
  // After "[", "]" may follow, but not ",".
  const State open = text_and_space(from, "[");
  if (min == 0) builder_.add_epsilon(open, close);
  State before = builder_.add_state();
  builder_.add_epsilon(open, before);
  // Here `before` is the state before item i.
  for (uint64_t i = 0; i < max; ++i) {
    const bool loops = max == kUnbounded && i >= prefix.size() && i + 1 >= min;
    const State end = builder_.add_state();
    if (i < prefix.size()) {
      add_value(before, end, prefix[i], child(child(pointer, "prefixItems"), i));
    } else if (max == 1) {
      add_value(before, end, items, items_at);
    } else {
      // The rule's name includes the state, since a merged schema has the pointer of one of its
      // parts.
      if (i == prefix.size()) rule(items_at + " " + std::to_string(from), items, items_at);
      builder_.add_call(before, end, rules_.at(items_at + " " + std::to_string(from)));
    }
    if (i + 1 >= min) builder_.add_epsilon(space(end), close);
    if (i + 1 == max) return;
    const State next = text_and_space(blank(end), ",");
    if (loops) return builder_.add_epsilon(next, before);
    before = next;
  }
}

void JsonCompiler::add_object(State from, State to, const Json& schema,
                              const std::string& pointer) {
  const Json own = schema.value("properties", Json::object());
  if (!own.is_object()) fail_at(child(pointer, "properties"), "an object is expected");
  const Json other =
      schema.contains("additionalProperties") ? schema["additionalProperties"] : Json(true);
  const std::string other_at = child(pointer, "additionalProperties");
  check_keywords(other, other_at);
  const std::vector<std::string> required = required_names(schema, pointer);
  if (own.empty() && required.empty()) return add_map(from, to, schema, pointer);
  for (const char* keyword : {"minProperties", "maxProperties"}) {
    if (schema.contains(keyword)) {
      fail_at(child(pointer, keyword), "not supported beside properties or required");
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : own.items()) names.push_back(name);
  std::unordered_set<std::string> known(names.begin(), names.end());
  for (const std::string& name : required) {
    if (known.insert(name).second) names.push_back(name);
  }
  const std::unordered_set<std::string> needed(required.begin(), required.end());
  // `none`: the state if no property was written yet; `some`: the state after at least one. Both
  // lead to the next key.
  const State close = builder_.add_state();
  builder_.add_byte(close, to, '}');
  State none = text_and_space(from, "{"), some = builder_.add_state();
  for (const std::string& name : names) {
    const State key = builder_.add_state(), next_none = builder_.add_state(),
                next_some = builder_.add_state();
    builder_.add_epsilon(none, key);
    builder_.add_epsilon(text_and_space(blank(some), ","), key);
    const bool declared = own.contains(name);
    add_value(colon(add_quoted(key, name)), next_some, declared ? own[name] : other,
              declared ? child(child(pointer, "properties"), name) : other_at);
    if (needed.count(name) == 0) {
      builder_.add_epsilon(none, next_none);
      builder_.add_epsilon(some, next_some);
    }
    none = next_none;
    some = next_some;
  }
  builder_.add_epsilon(none, close);
  builder_.add_epsilon(space(some), close);
  if (other == false) return;
  const State key = builder_.add_state(), key_end = builder_.add_state();
  builder_.add_epsilon(none, key);
  builder_.add_epsilon(text_and_space(blank(some), ","), key);
  add_other_string(key, key_end, names);
  add_value(colon(key_end), some, other, other_at);
}

void JsonCompiler::add_map(State from, State to, const Json& schema, const std::string& pointer) {
  const Json other =
      schema.contains("additionalProperties") ? schema["additionalProperties"] : Json(true);
  const std::string other_at = child(pointer, "additionalProperties");
  const uint64_t min = size_keyword(schema, "minProperties", 0, pointer);
  const uint64_t max =
      other == false ? 0 : size_keyword(schema, "maxProperties", kUnbounded, pointer);
  if (min > max) return;
  // More than one cannot be guaranteed: a text may contain the same key twice, which counts once.
  if (min > 1) fail_at(child(pointer, "minProperties"), "supported up to 1");
  const State close = builder_.add_state();
  builder_.add_byte(close, to, '}');
  const State open = text_and_space(from, "{");
  if (min == 0) builder_.add_epsilon(open, close);
  State before = builder_.add_state();
  builder_.add_epsilon(open, before);
  const std::string name = other_at + " " + std::to_string(from);
  for (uint64_t i = 0; i < max; ++i) {
    const State key_end = builder_.add_state(), end = builder_.add_state();
    add_string(before, key_end, Json::object(), pointer);
    builder_.add_call(colon(key_end), end, rule(name, other, other_at));
    builder_.add_epsilon(space(end), close);
    if (i + 1 == max) return;
    const State next = text_and_space(blank(end), ",");
    if (max == kUnbounded) return builder_.add_epsilon(next, before);
    before = next;
  }
}

}  // namespace executorch::extension::llm::constraint
