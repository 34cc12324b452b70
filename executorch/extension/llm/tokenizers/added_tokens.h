#pragma once

#include <executorch/extension/llm/tokenizers/trie.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenizers {

/// Tokens that are found in a text before anything else happens to it.
class AddedTokens {
 public:
  struct Token {
    uint32_t token;
    bool single_word;
    bool strips_left;
    bool strips_right;
  };
  /// A part of the text; `token` is kNoToken where it is none.
  struct Part {
    std::string_view text;
    uint32_t token;
  };
  void add(std::string text, Token token) {
    entries_.emplace_back(std::move(text), static_cast<uint32_t>(tokens_.size()));
    tokens_.push_back(token);
  }
  void finish() { trie_.build(std::move(entries_)); }
  bool empty() const { return tokens_.empty(); }
  /// Appends the parts of `text`: leftmost tokens, of those the longest.
  void split(std::string_view text, std::vector<Part>& parts) const;

 private:
  std::vector<std::pair<std::string, uint32_t>> entries_;
  std::vector<Token> tokens_;
  Trie trie_;
};

}  // namespace tokenizers
