/// What reading the parts of a request shares.
#pragma once

#include <executorch/extension/llm/server/api.h>
#include <executorch/extension/llm/tokenizers/json.h>

namespace executorch::extension::llm::server {

/// The deepest nesting of arrays and objects in a request, and in the JSON that its texts have.
inline constexpr size_t kMaxDepth = 64;

/// Throws an ApiError for the part of a request that `param` names.
[[noreturn]] void refuse(const std::string& param, const std::string& what,
                         const std::string& code = "invalid_value");

/// JSON whose members are in the order of the text; templates and constraints write them so.
using OrderedJson = ::tokenizers::Json;

/// Takes the known fields out of a request; the fields that remain are unknown ones.
class Fields {
 public:
  explicit Fields(Json object) : object_(std::move(object)) {}

  /// Null counts as missing.
  Json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) return nullptr;
    Json value = std::move(*found);
    object_.erase(found);
    return value;
  }

  double number(const char* name, double otherwise, double min, double max) {
    const Json value = take(name);
    if (value.is_null()) return otherwise;
    if (!value.is_number()) refuse(name, "a number is expected", "invalid_type");
    const double given = value.get<double>();
    if (!(given >= min && given <= max)) {
      const auto shown = [](double bound) { return Json(bound).dump(); };
      refuse(name, "it must be from " + shown(min) + " to " + shown(max));
    }
    return given;
  }

  std::optional<int64_t> integer(const char* name, int64_t min, int64_t max) {
    const Json value = take(name);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number_integer()) refuse(name, "an integer is expected", "invalid_type");
    const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max) {
      refuse(name, "it must be from " + std::to_string(min) + " to " + std::to_string(max));
    }
    return value.get<int64_t>();
  }

  bool boolean(const char* name, bool otherwise) {
    const Json value = take(name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) refuse(name, "true or false is expected", "invalid_type");
    return value.get<bool>();
  }

  /// Refuses `name` unless it is missing or `harmless`.
  void expect_only(const char* name, const Json& harmless) {
    const Json value = take(name);
    if (!value.is_null() && value != harmless) refuse(name, "not supported", "unsupported_value");
  }

  const Json& rest() const { return object_; }

 private:
  Json object_;
};

/// Reads "messages".
void parse_messages(const Json& messages, ApiRequest& request);

/// Takes "tools" and "tool_choice" out of `fields`, which were read from `body`. Writes the tools,
/// and the format of the answer if it has to be a call.
void parse_tools(Fields& fields, const std::string& body, ApiRequest& request);

}  // namespace executorch::extension::llm::server
