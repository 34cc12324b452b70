#pragma once

#include <executorch/devtools/inspect/describe.h>

#include <string>

namespace executorch::devtools {

/// How two programs differ, from their files. Methods are matched by name, instructions by what
/// they call and where their operands come from rather than by numbers, constants by their bytes.
///   {"equal", "file_bytes": [a, b], "only_in": [[methods of a], [of b]],
///    "methods": [{"name", "equal", "operators": [{"operator", "count": [a, b]}...],
///                 "memory": [[bytes of each arena], ...], "delegate_bytes": [a, b],
///                 "interface": [text, text], "instructions": ["- ...", "+ ..."...]}...],
///    "constants": {"count": [a, b], "bytes": [a, b], "only_in": [[descriptions], ...]}}
/// Lists of differences hold what differs only. Throws InspectError, which begins with a path.
Json diff_programs(const std::string& a, const std::string& b);

/// For people; "" for equal programs.
std::string diff_text(const Json& diff);

}  // namespace executorch::devtools
