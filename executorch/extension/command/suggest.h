#pragma once

#include <string>
#include <vector>

namespace executorch::extension::command {

/// Insertions, deletions, replacements and exchanges of neighbours that lead from one to the other.
size_t edit_distance(const std::string& a, const std::string& b);

/// What to say after "no such name": "; did you mean 'x'?" if one is close, and else "; there are:
/// x, y".
std::string suggestion(const std::string& name, const std::vector<std::string>& known);

}  // namespace executorch::extension::command
