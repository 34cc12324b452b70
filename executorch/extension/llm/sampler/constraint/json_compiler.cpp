#include <executorch/extension/llm/sampler/constraint/json_compiler.h>

#include <executorch/extension/llm/sampler/constraint/code_points.h>
#include <executorch/extension/llm/sampler/constraint/json_numbers.h>
#include <executorch/extension/llm/sampler/constraint/json_schema.h>

#include <algorithm>

namespace executorch::extension::llm::constraint {
namespace {

/// Keywords that choose among schemas, or name one.
const char* chooser(const Json& schema) {
  for (const char* keyword : {"allOf", "$ref", "anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return keyword;
  }
  return nullptr;
}

Json without(const Json& schema, const std::string& keyword) {
  Json rest = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != keyword && !is_annotation(name)) rest[name] = value;
  }
  return rest;
}

}  // namespace

Nfa json_schema_automaton(const std::string& schema) {
  return JsonCompiler(schema).compile();
}

Nfa JsonCompiler::compile() {
  const uint32_t text = builder_.add_rule();
  // No space behind it: the text is complete at its last bracket.
  builder_.add_call(space(builder_.start(text)), builder_.end(text),
                    rule("", document_.root(), ""));
  while (!pending_.empty()) {
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    add_value(builder_.start(next.rule), builder_.end(next.rule), next.schema, next.pointer);
  }
  return builder_.finish(text);
}

uint32_t JsonCompiler::rule(const std::string& name, const Json& schema,
                            const std::string& pointer) {
  const auto [found, added] = rules_.try_emplace(name, 0);
  if (added) {
    found->second = builder_.add_rule();
    pending_.push_back({found->second, schema, pointer});
  }
  return found->second;
}

uint32_t JsonCompiler::any_value() {
  // A name that no pointer has.
  return rule("any value", Json{{"type", types_of(true, "")}}, "");
}

/// Nothing, one space, or a new line and its indentation: what writers of JSON put between tokens.
State JsonCompiler::space(State from) {
  static const ByteSet kIndentation = ByteSet().set(' ').set('\t');
  const State end = builder_.add_state();
  builder_.add_epsilon(from, end);
  builder_.add_byte(from, end, ' ');
  State line = builder_.add_state();
  builder_.add_byte(from, line, '\n');
  for (uint32_t i = 0; i < kMaxIndentation; ++i) {
    builder_.add_epsilon(line, end);
    const State next = builder_.add_state();
    builder_.add_bytes(line, next, kIndentation);
    line = next;
  }
  builder_.add_epsilon(line, end);
  return end;
}

State JsonCompiler::blank(State from) {
  const State end = builder_.add_state();
  builder_.add_epsilon(from, end);
  builder_.add_byte(from, end, ' ');
  return end;
}

State JsonCompiler::colon(State from) {
  return blank(builder_.add_text(blank(from), ":"));
}

State JsonCompiler::text_and_space(State from, const std::string& text) {
  return space(builder_.add_text(from, text));
}

void JsonCompiler::add_value(State from, State to, const Json& schema, const std::string& pointer) {
  check_keywords(schema, pointer);
  const Depth depth(depth_, pointer);
  if (schema.is_boolean()) {
    if (schema.get<bool>()) builder_.add_call(from, to, any_value());
  } else if (const char* keyword = chooser(schema)) {
    add_branches(from, to, schema, pointer, keyword);
  } else if (schema.contains("enum") || schema.contains("const")) {
    Json values = schema.contains("const") ? Json::array({schema["const"]}) : schema["enum"];
    if (!values.is_array()) fail_at(child(pointer, "enum"), "an array is expected");
    const bool both = schema.contains("const") && schema.contains("enum");
    for (const Json& value : values) {
      if (both &&
          std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
        continue;
      }
      if (document_.allows(schema, value, pointer)) add_constant(from, to, value);
    }
  } else if (without(schema, "").empty()) {
    builder_.add_call(from, to, any_value());
  } else {
    for (const std::string& type : types_of(schema, pointer)) {
      add_of_type(from, to, type, schema, pointer);
    }
  }
}

void JsonCompiler::add_branches(State from, State to, const Json& schema,
                                const std::string& pointer, const char* keyword) {
  const Json rest = without(schema, keyword);
  if (keyword == std::string("$ref") && rest.empty()) {
    std::string target;
    const Json& meant = document_.resolve(schema["$ref"], pointer, target);
    return builder_.add_call(from, to, rule(target, meant, target));
  }
  if (keyword == std::string("$ref") || keyword == std::string("allOf")) {
    return add_value(from, to, document_.flat(schema, pointer), pointer);
  }
  const std::string place = child(pointer, keyword);
  const Json& branches = schema[keyword];
  if (!branches.is_array() || branches.empty()) fail_at(place, "an array of schemas is expected");
  const bool one_of = keyword == std::string("oneOf");
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t k = 0; one_of && k < i; ++k) {
      if (document_.exclude_each_other(branches[k], branches[i], child(place, i))) continue;
      fail_at(child(place, i), "this branch of oneOf may be satisfied together with branch " +
                                   std::to_string(k) + "; that is not supported");
    }
    const Json branch =
        rest.empty() ? branches[i] : document_.both(rest, branches[i], child(place, i));
    add_value(from, to, branch, child(place, i));
  }
}

void JsonCompiler::add_of_type(State from, State to, const std::string& type, const Json& schema,
                               const std::string& pointer) {
  if (type == "null") {
    builder_.add_epsilon(builder_.add_text(from, "null"), to);
  } else if (type == "boolean") {
    builder_.add_epsilon(builder_.add_text(from, "true"), to);
    builder_.add_epsilon(builder_.add_text(from, "false"), to);
  } else if (type == "string") {
    add_string(from, to, schema, pointer);
  } else if (type == "integer") {
    add_integers(builder_, from, to, schema, pointer);
  } else if (type == "number") {
    add_numbers(builder_, from, to, schema, pointer);
  } else if (type == "array") {
    add_array(from, to, schema, pointer);
  } else {
    add_object(from, to, schema, pointer);
  }
}

void JsonCompiler::add_constant(State from, State to, const Json& value) {
  if (value.is_string()) {
    from = add_quoted(from, value);
  } else if (value.is_structured()) {
    from = text_and_space(from, value.is_object() ? "{" : "[");
    bool first = true;
    for (const auto& [name, part] : value.items()) {
      if (!first) from = text_and_space(blank(from), ",");
      first = false;
      if (value.is_object()) from = colon(add_quoted(from, name));
      const State end = builder_.add_state();
      add_constant(from, end, part);
      from = end;
    }
    from = builder_.add_text(space(from), value.is_object() ? "}" : "]");
  } else {
    from = builder_.add_text(from, value.dump());
  }
  builder_.add_epsilon(from, to);
}

}  // namespace executorch::extension::llm::constraint
