#pragma once

#include <executorch/extension/llm/tokenizers/byte_level_bpe.h>
#include <executorch/extension/llm/tokenizers/regex.h>
#include <executorch/extension/llm/tokenizers/special_token_matcher.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/llm/tokenizers/trie.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>
#include <executorch/extension/llm/tokenizers/word_scanner.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// The bytes of a file; LoadFailure with a message where it cannot be read.
Result<std::string> read_file(const std::string& path, std::string& message);

namespace detail {

/// What tokenizers have in common whose tokens are strings of bytes, with special tokens between
/// them: text is cut at special tokens, then into words by a pattern, then merged.
class BPETokenizerBase : public Tokenizer {
 public:
  Error load(const std::string& tokenizer_path) override;
  Error load_from_bytes(std::string_view bytes) override;
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos,
                                       int8_t eos) const override;
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<uint64_t> piece_to_id(const std::string& text) const override;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;
  Result<std::string> token_bytes(uint64_t token) const override;
  bool is_special(uint64_t token) const override;
  std::vector<uint64_t> end_tokens() const override;
  void set_bos_tok(uint64_t token) override;
  void set_eos_tok(uint64_t token) override;

 protected:
  /// Fills the members below; exceptions become errors in the caller.
  virtual Error parse(std::string_view bytes) = 0;
  /// Appends the tokens of a text without special tokens. False where there are none.
  virtual bool encode_text(std::string_view text, std::vector<uint64_t>& tokens) const;

  void clear();
  Error set_pattern(const std::string& pattern);
  bool add_token(std::string_view bytes, uint64_t token);
  bool add_special(std::string_view text, uint64_t token);
  /// After all tokens; finds the first and last token by name unless they are given.
  void finish();

  Vocabulary vocabulary_;
  std::vector<bool> special_;
  std::vector<std::pair<std::string, uint32_t>> special_entries_;
  Trie special_trie_;
  ByteLevelBpe bpe_;
  bool has_bos_ = false;
  bool has_eos_ = false;
  std::vector<uint64_t> end_tokens_;

 private:
  std::optional<WordPattern> scanned_;
  UnicodeRegex regex_;
  mutable WordCaches caches_;
};

}  // namespace detail
}  // namespace tokenizers
