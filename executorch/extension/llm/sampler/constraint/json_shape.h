/// How deep and how wide a JSON text is, found before it is parsed. Parsing recurses or takes time
/// in proportion to the square of an object's members, and a parser that is told to ask at each
/// element looks at all elements of an array each time.
#pragma once

#include <cstddef>
#include <string_view>

namespace executorch::extension::llm::constraint {

struct JsonShape {
  size_t depth = 0;    // of the deepest array or object; 1 for one that is in no other
  size_t members = 0;  // of the object that has most
};

/// The shape of `text`, of which nothing is read behind the first array or object that is nested
/// more than `most_depth` deep. A text that is not JSON has some shape, too.
JsonShape json_shape(std::string_view text, size_t most_depth);

}  // namespace executorch::extension::llm::constraint
