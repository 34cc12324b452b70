#pragma once

#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenizers {

/// A map from byte strings to numbers that can be walked byte by byte: a double-array trie, with
/// one memory access per byte.
class Trie {
 public:
  /// Of equal strings the last entry counts; empty strings are ignored.
  void build(std::vector<std::pair<std::string, uint32_t>> entries);

  bool empty() const { return units_.size() <= 1; }
  /// The child of a node for a byte, or 0 if there is none. The root is node 0.
  uint32_t child(uint32_t node, char byte) const {
    const uint32_t to = units_[node].base + static_cast<uint8_t>(byte);
    return to < units_.size() && units_[to].parent == node && to != 0 ? to : 0;
  }
  /// The number of the string that ends at the node; kNoToken if none does.
  uint32_t value(uint32_t node) const { return units_[node].value; }
  /// The number of the longest string that `text` starts with, and its length; or kNoToken.
  uint32_t longest(std::string_view text, size_t& length) const {
    uint32_t found = kNoToken;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node == 0) break;
      if (units_[node].value != kNoToken) {
        found = units_[node].value;
        length = i + 1;
      }
    }
    return found;
  }

 private:
  struct Unit {
    uint32_t base = 0;
    uint32_t parent = kNoToken;
    uint32_t value = kNoToken;
  };
  std::vector<Unit> units_{1};
};

}  // namespace tokenizers
