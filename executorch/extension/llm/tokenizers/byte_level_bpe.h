#pragma once

#include <executorch/extension/llm/tokenizers/byte_pairs.h>
#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// Byte pair encoding of words of bytes.
struct ByteLevelBpe {
  enum class Merges {
    /// Neighbours merge when their bytes together are a token; smaller tokens first.
    kTokens,
    /// Neighbours merge when `pairs` says so.
    kPairs,
    /// The longest token that the rest of the word starts with, again and again.
    kLongest,
  };
  Merges merges = Merges::kTokens;
  /// A word that is a token is that token, whatever its merges are.
  bool whole_words = true;
  /// Bytes that are not in the vocabulary become this one, or nothing where it is kNoToken.
  uint32_t unknown = kNoToken;
  BytesMap tokens;
  PairMap pairs;
  size_t longest = 0;

  bool add(std::string_view bytes, uint32_t token) {
    longest = std::max(longest, bytes.size());
    return tokens.insert(bytes, token);
  }
  void encode(std::string_view word, std::vector<uint64_t>& out) const;

 private:
  void encode_longest(std::string_view word, std::vector<uint64_t>& out) const;
};

/// The alphabet of printable characters in which vocabularies of GPT-2's kind spell bytes.
namespace byte_alphabet {
/// The character of a byte.
uint32_t character(uint8_t byte);
/// The byte of a character, or -1.
int byte(uint32_t character);
/// The bytes that `spelling` stands for; false where a character is not of the alphabet.
bool decode(std::string_view spelling, std::string& bytes);
std::string encode(std::string_view bytes);
}  // namespace byte_alphabet

}  // namespace tokenizers
