#include <executorch/extension/llm/sampler/constraint/schema.h>

#include <executorch/extension/llm/sampler/constraint/code_points.h>
#include <executorch/extension/llm/sampler/constraint/json_shape.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace executorch::extension::llm::constraint {
namespace {

constexpr size_t kMaxText = 1 << 20;
/// Members of an object: finding one takes time in proportion to them.
constexpr size_t kMaxMembers = 4096;
constexpr size_t kMaxMerged = 4096;
/// Pairs of values, of arrays that are combined.
constexpr uint64_t kMaxPairs = 1 << 22;

const std::set<std::string> kAnnotations = {
    "$anchor",          "$comment",      "$defs",    "$id",         "$schema",    "contentEncoding",
    "contentMediaType", "contentSchema", "default",  "definitions", "deprecated", "description",
    "discriminator",    "example",       "examples", "readOnly",    "title",      "writeOnly"};
const std::set<std::string> kKeywords = {"$ref",
                                         "additionalProperties",
                                         "allOf",
                                         "anyOf",
                                         "const",
                                         "enum",
                                         "exclusiveMaximum",
                                         "exclusiveMinimum",
                                         "format",
                                         "items",
                                         "maxItems",
                                         "maxLength",
                                         "maxProperties",
                                         "maximum",
                                         "minItems",
                                         "minLength",
                                         "minProperties",
                                         "minimum",
                                         "oneOf",
                                         "pattern",
                                         "prefixItems",
                                         "properties",
                                         "required",
                                         "type"};
const std::vector<std::string> kTypes = {"null",   "boolean", "object", "array",
                                         "string", "number",  "integer"};

bool is_integer(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()));
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return is_integer(value);
  return value.is_number();
}

std::vector<std::string> common_types(const std::vector<std::string>& a,
                                      const std::vector<std::string>& b) {
  std::vector<std::string> common;
  const auto has = [](const std::vector<std::string>& types, const std::string& type) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  for (const std::string& type : kTypes) {
    const auto covers = [&](const std::vector<std::string>& types) {
      return has(types, type) || (type == "integer" && has(types, "number"));
    };
    if (!covers(a) || !covers(b)) continue;
    if (type == "integer" && has(common, "number")) continue;
    common.push_back(type);
  }
  return common;
}

}  // namespace

void fail_at(const std::string& pointer, const std::string& what) {
  throw Unusable("at " + (pointer.empty() ? "the root" : pointer) + " of the schema: " + what);
}

uint64_t size_keyword(const Json& schema, const char* name, uint64_t otherwise,
                      const std::string& pointer) {
  const auto found = schema.find(name);
  if (found == schema.end()) return otherwise;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  if (is_integer(*found)) {
    const double size = found->get<double>();
    if (size >= 0 && size <= 1e15) return static_cast<uint64_t>(size);
  }
  fail_at(child(pointer, name), "a number that is not negative is expected");
}

std::string child(const std::string& pointer, const std::string& name) {
  std::string escaped;
  for (const char c : name) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return pointer + "/" + escaped;
}

std::string child(const std::string& pointer, size_t index) {
  return pointer + "/" + std::to_string(index);
}

bool is_annotation(const std::string& keyword) {
  return kAnnotations.count(keyword) != 0 || keyword.starts_with("x-");
}

void check_keywords(const Json& schema, const std::string& pointer) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) fail_at(pointer, "an object or a boolean is expected");
  for (const auto& [name, value] : schema.items()) {
    // What is checked by other means is harmless where it asks for nothing.
    if (name == "uniqueItems" && value == false) continue;
    if (!is_annotation(name) && kKeywords.count(name) == 0) {
      fail_at(child(pointer, name), "this keyword is not supported");
    }
  }
}

std::vector<std::string> types_of(const Json& schema, const std::string& pointer) {
  const auto found = schema.is_object() ? schema.find("type") : schema.end();
  if (!schema.is_object() || found == schema.end()) return {kTypes.begin(), kTypes.end() - 1};
  std::vector<std::string> types;
  for (const Json& type : found->is_array() ? *found : Json::array({*found})) {
    if (!type.is_string() || std::find(kTypes.begin(), kTypes.end(), type) == kTypes.end()) {
      fail_at(child(pointer, "type"), "there is no such type");
    }
    types.push_back(type);
  }
  return common_types(types, types);
}

SchemaDocument::SchemaDocument(const std::string& text) {
  if (text.size() > kMaxText) throw Unusable("a schema of more than 1 MiB");
  const JsonShape shape = json_shape(text, kMaxDepth);
  if (shape.depth > kMaxDepth) {
    throw Unusable("a schema nested more than " + std::to_string(kMaxDepth) + " deep");
  }
  if (shape.members > kMaxMembers) {
    throw Unusable("an object of more than " + std::to_string(kMaxMembers) +
                   " members in the schema");
  }
  try {
    root_ = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Unusable(std::string("the schema is not JSON: ") + error.what());
  }
}

const Json& SchemaDocument::resolve(const Json& ref, const std::string& pointer,
                                    std::string& target) const {
  const std::string place = child(pointer, "$ref");
  if (!ref.is_string()) fail_at(place, "a string is expected");
  const std::string text = ref;
  if (text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/')) {
    fail_at(place, "only references within the schema, as #/$defs/name, are supported");
  }
  target.clear();
  for (size_t i = 1; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                         std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    target += escaped ? static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)) : text[i];
    if (escaped) i += 2;
  }
  try {
    const Json::json_pointer at(target);
    if (root_.contains(at)) return root_.at(at);
  } catch (const nlohmann::json::exception&) {
  }
  fail_at(place, "there is nothing at " + text);
}

Depth::Depth(int& depth, const std::string& pointer) : depth_(depth) {
  if (depth_ == kMaxDepth) fail_at(pointer, "schemas nested or combined too deeply");
  ++depth_;
}

Json SchemaDocument::flat(const Json& schema, const std::string& pointer) {
  const Depth depth(depth_, pointer);
  check_keywords(schema, pointer);
  if (++n_merged_ > kMaxMerged) fail_at(pointer, "too many combinations of schemas");
  if (!schema.is_object()) return schema;
  Json rest = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (!is_annotation(name) && name != "$ref" && name != "allOf") rest[name] = value;
  }
  if (const auto ref = schema.find("$ref"); ref != schema.end()) {
    std::string target;
    const Json& meant = resolve(*ref, pointer, target);
    rest = both(flat(meant, target), rest, pointer);
  }
  if (const auto all = schema.find("allOf"); all != schema.end()) {
    if (!all->is_array()) fail_at(child(pointer, "allOf"), "an array is expected");
    for (size_t i = 0; i < all->size(); ++i) {
      const std::string place = child(child(pointer, "allOf"), i);
      rest = both(rest, flat((*all)[i], place), place);
    }
  }
  return rest;
}

Json SchemaDocument::both(const Json& a, const Json& b, const std::string& pointer) {
  const Depth depth(depth_, pointer);
  if (++n_merged_ > kMaxMerged) fail_at(pointer, "too many combinations of schemas");
  check_keywords(a, pointer);
  check_keywords(b, pointer);
  if (a.is_boolean()) return a.get<bool>() ? b : a;
  if (b.is_boolean()) return b.get<bool>() ? a : b;
  if (a.empty()) return b;
  if (b.empty()) return a;
  for (const Json* one : {&a, &b}) {
    if (!one->contains("$ref") && !one->contains("allOf")) continue;
    return both(flat(a, pointer), flat(b, pointer), pointer);
  }
  Json merged = a;
  for (const auto& [name, value] : b.items()) {
    if (is_annotation(name)) continue;
    if (name == "type") {
      merged["type"] = common_types(types_of(a, pointer), types_of(b, pointer));
    } else {
      merge_keyword(merged, name, value, pointer);
    }
  }
  for (const char* name : {"properties", "additionalProperties"}) {
    if (a.contains(name) || b.contains(name)) {
      merge_objects(merged, a, b, pointer);
      break;
    }
  }
  return merged;
}

void SchemaDocument::count_pairs(const Json& a, const Json& b, const std::string& pointer) {
  n_pairs_ += uint64_t{a.size()} * b.size();
  if (n_pairs_ > kMaxPairs) fail_at(pointer, "too many combinations of values");
}

void SchemaDocument::merge_keyword(Json& into, const std::string& name, const Json& value,
                                   const std::string& pointer) {
  if (name == "properties" || name == "additionalProperties") return;  // merge_objects
  const auto found = into.find(name);
  if (found == into.end()) {
    // What one says of the items behind its prefix is about others where there is no prefix.
    if (name == "prefixItems" && into.contains("items")) {
      fail_at(pointer, "prefixItems and items of schemas that are combined are not supported");
    }
    if (name == "items" && into.contains("prefixItems")) {
      fail_at(pointer, "prefixItems and items of schemas that are combined are not supported");
    }
    into[name] = value;
    return;
  }
  if (*found == value) return;
  count_pairs(*found, value, pointer);
  if (name == "required" && value.is_array() && found->is_array()) {
    for (const Json& one : value) {
      if (std::find(found->begin(), found->end(), one) == found->end()) found->push_back(one);
    }
  } else if (name == "enum" && value.is_array() && found->is_array()) {
    Json common = Json::array();
    for (const Json& one : *found) {
      if (std::find(value.begin(), value.end(), one) != value.end()) common.push_back(one);
    }
    *found = common;
  } else if (name == "const") {
    into["enum"] = Json::array();
  } else if (name == "items" && !into.contains("prefixItems")) {
    *found = both(*found, value, child(pointer, name));
  } else if (found->is_number() && value.is_number()) {
    const bool is_least = name.starts_with("min") || name == "exclusiveMinimum";
    if (is_least == (*found < value)) *found = value;
  } else {
    fail_at(child(pointer, name), "two of these cannot be combined");
  }
}

/// A property has the schemas that both have for it; the one that does not name it may have one for
/// others.
void SchemaDocument::merge_objects(Json& into, const Json& a, const Json& b,
                                   const std::string& pointer) {
  const auto part = [&](const Json& schema, const char* name, Json otherwise) {
    return schema.contains(name) ? schema[name] : otherwise;
  };
  const Json a_own = part(a, "properties", Json::object());
  const Json b_own = part(b, "properties", Json::object());
  const Json a_other = part(a, "additionalProperties", true);
  const Json b_other = part(b, "additionalProperties", true);
  if (!a_own.is_object() || !b_own.is_object()) {
    fail_at(child(pointer, "properties"), "an object is expected");
  }
  Json own = Json::object();
  for (const auto& [name, schema] : a_own.items()) {
    own[name] = both(schema, part(b_own, name.c_str(), b_other), child(pointer, name));
  }
  for (const auto& [name, schema] : b_own.items()) {
    if (!own.contains(name)) own[name] = both(a_other, schema, child(pointer, name));
  }
  into["properties"] = own;
  into["additionalProperties"] = both(a_other, b_other, child(pointer, "additionalProperties"));
}

bool SchemaDocument::exclude_each_other(const Json& a_given, const Json& b_given,
                                        const std::string& pointer, int depth) {
  if (depth > 8) return false;
  const Json a = flat(a_given, pointer), b = flat(b_given, pointer);
  if (a == false || b == false) return true;
  if (!a.is_object() || !b.is_object()) return false;
  const auto values = [](const Json& schema) {
    if (schema.contains("const")) return Json::array({schema["const"]});
    return schema.contains("enum") ? schema["enum"] : Json();
  };
  const Json a_values = values(a), b_values = values(b);
  if (a_values.is_array() && b_values.is_array()) {
    count_pairs(a_values, b_values, pointer);
    return std::none_of(a_values.begin(), a_values.end(), [&](const Json& value) {
      return std::find(b_values.begin(), b_values.end(), value) != b_values.end();
    });
  }
  const auto types_of_one = [&](const Json& schema, const Json& its_values) {
    if (!its_values.is_array() || schema.contains("type")) return types_of(schema, pointer);
    std::vector<std::string> types;
    for (const std::string& type : kTypes) {
      const auto is = [&](const Json& value) { return has_type(value, type); };
      if (std::any_of(its_values.begin(), its_values.end(), is)) types.push_back(type);
    }
    return types;
  };
  const auto types = common_types(types_of_one(a, a_values), types_of_one(b, b_values));
  if (types.empty()) return true;
  if (types != std::vector<std::string>{"object"}) return false;
  // Objects: a property that one needs and the other does not allow with such a value.
  const auto property = [](const Json& schema, const std::string& name) {
    if (schema.contains("properties") && schema["properties"].contains(name)) {
      return schema["properties"][name];
    }
    return schema.contains("additionalProperties") ? schema["additionalProperties"] : Json(true);
  };
  for (const auto& [one, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    if (!one->contains("required") || !(*one)["required"].is_array()) continue;
    const Json needed = other->contains("required") ? (*other)["required"] : Json::array();
    for (const char* keyword : {"required", "properties"}) {
      if (!other->contains(keyword)) continue;
      count_pairs((*one)["required"], (*other)[keyword], pointer);
    }
    for (const Json& name : (*one)["required"]) {
      if (!name.is_string()) continue;
      const Json theirs = property(*other, name);
      if (theirs == false) return true;
      if (std::find(needed.begin(), needed.end(), name) == needed.end()) continue;
      if (exclude_each_other(property(*one, name), theirs, pointer, depth + 1)) return true;
    }
  }
  return false;
}

bool SchemaDocument::allows(const Json& schema, const Json& value,
                            const std::string& pointer) const {
  const auto types = types_of(schema, pointer);
  const auto is = [&](const std::string& type) { return has_type(value, type); };
  if (std::none_of(types.begin(), types.end(), is)) return false;
  for (const auto& [name, limit] : schema.items()) {
    if (is_annotation(name) || name == "type" || name == "enum" || name == "const") continue;
    if (value.is_number() && limit.is_number()) {
      if (name == "minimum" && value < limit) return false;
      if (name == "maximum" && value > limit) return false;
      if (name == "exclusiveMinimum" && value <= limit) return false;
      if (name == "exclusiveMaximum" && value >= limit) return false;
    } else if (value.is_string() && (name == "minLength" || name == "maxLength")) {
      const size_t length = decode_utf8(value).size();
      const uint64_t bound = size_keyword(schema, name.c_str(), 0, pointer);
      if (name == "minLength" ? length < bound : length > bound) return false;
    } else if (value.is_structured() || value.is_string()) {
      fail_at(child(pointer, name), "not supported beside enum or const");
    }
  }
  return true;
}

}  // namespace executorch::extension::llm::constraint
