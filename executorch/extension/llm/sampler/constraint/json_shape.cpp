#include <executorch/extension/llm/sampler/constraint/json_shape.h>

#include <algorithm>
#include <vector>

namespace executorch::extension::llm::constraint {

JsonShape json_shape(std::string_view text, size_t most_depth) {
  JsonShape shape;
  std::vector<size_t> colons(1);  // in each array or object that is open, and outside of all
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, colons.size());
      if (shape.depth > most_depth) break;
      colons.push_back(0);
    } else if (c == '}' || c == ']') {
      if (colons.size() > 1) colons.pop_back();
    } else if (c == ':') {
      shape.members = std::max(shape.members, ++colons.back());
    }
  }
  return shape;
}

}  // namespace executorch::extension::llm::constraint
