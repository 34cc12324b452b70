#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// SentencePiece's compiled table of replacements: a double array of strings (Darts-clone's
/// format), then the replacements, each ended by a zero.
class Charsmap {
 public:
  /// False where the bytes are no such table. No bytes: a table without replacements.
  bool parse(std::string_view bytes);
  bool empty() const { return units_.empty(); }
  /// Whether `text` starts with a string that has a replacement: the longest, or the shortest.
  bool find(std::string_view text, bool longest, size_t& length,
            std::string_view& replacement) const;

 private:
  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace tokenizers
