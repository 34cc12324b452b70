#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <string>
#include <vector>

/// What is in a program (.pte) or external data file (.ptd), for people and for goldens.
namespace executorch::devtools {

/// Objects keep the order of their keys, so that equal files give equal text.
using Json = nlohmann::ordered_json;

/// Thrown for a file that cannot be described; the message begins with its path.
struct InspectError {
  std::string message;
};

/// Reads and verifies the file at `path`, without its segments, and describes all of it. Which kind
/// of file it is shows in the key "kind": "program" or "data". Throws InspectError if the file
/// cannot be read, is neither, or is damaged.
Json describe_file(const std::string& path);

/// The tensors of `program` whose bytes are in an external file, but not in `data` or not with
/// that type and shape: one line for each.
std::vector<std::string> missing_external_data(const Json& program, const Json& data);

/// JSON in one line, or with `indent` spaces; bytes that are no UTF-8 are replaced.
inline std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// A number, or the name of what JSON has no number for: "nan", "inf" or "-inf", which float() of
/// Python takes.
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// The stable text form of a description, one line for each value and instruction.
std::string to_text(const Json& description);

}  // namespace executorch::devtools
