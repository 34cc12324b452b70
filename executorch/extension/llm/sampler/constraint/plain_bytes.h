#pragma once

#include <cstdint>

namespace executorch::extension::llm::constraint {

/// ASCII that JSON strings may have as it is: most bytes of most tokens.
inline bool is_plain(uint8_t byte) {
  return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

}  // namespace executorch::extension::llm::constraint
