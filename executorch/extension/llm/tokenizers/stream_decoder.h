#pragma once

#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tokenizers {

/// Text from tokens that come one by one. What it gives is always whole characters of valid UTF-8:
/// the bytes of a character that goes on in the next token wait for it, and bytes that can never
/// become a character are U+FFFD. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// Before the first push(): the text goes on behind these tokens, possibly inside a character,
  /// which then comes whole.
  void follow(const std::vector<uint64_t>& text);

  /// The text that is complete now that `token` has come; may be empty.
  Result<std::string> push(uint64_t token);

  /// What still waits, as U+FFFD; the next token starts a new text.
  std::string finish();

 private:
  Result<std::string> added_to_previous(uint64_t token);
  Result<std::string> added_to_all(uint64_t token);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  /// The last token that spells something by itself, and those behind it, which do not.
  std::vector<uint64_t> previous_;
  /// Where tokens do not depend on the previous one alone: the last tokens, and how much of what
  /// they spell together has been given.
  std::vector<uint64_t> last_;
  size_t given_ = 0;
  std::string waiting_;
};

}  // namespace tokenizers
