#pragma once

#include <executorch/extension/llm/tokenizers/byte_pairs.h>
#include <executorch/extension/llm/tokenizers/json.h>
#include <executorch/extension/llm/tokenizers/trie.h>
#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// Tokenizes the pieces that a pre-tokenizer cut, each by itself.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the tokens of valid UTF-8.
  virtual void encode(std::string_view word, std::vector<uint64_t>& tokens) const = 0;
};

/// The "model" of a tokenizer.json over its vocabulary; null and a message where it is damaged.
std::unique_ptr<WordModel> make_word_model(const Json& model, const Vocabulary& vocabulary,
                                           std::string& message);

/// Adds the model's vocabulary: an object of numbers, or a list of pairs with scores (Unigram).
bool read_vocabulary(const Json& model, Vocabulary& vocabulary, std::string& message);

/// A merge of the "merges" list: "left right" or ["left", "right"].
bool read_merge(const Json& merge, std::string& left, std::string& right);

/// The tokens "<0x00>" to "<0xFF>", kNoToken where one is missing.
std::vector<uint32_t> byte_tokens(const Vocabulary& vocabulary);

}  // namespace tokenizers
