#pragma once

#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <cstdint>
#include <string>

namespace tokenizers {

/// Text from tokens that come one by one. What it gives is always whole characters of valid UTF-8:
/// the bytes of a character that goes on in the next token wait for it, and bytes that can never
/// become a character are U+FFFD. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// The text that is complete now that `token` has come; may be empty.
  Result<std::string> push(uint64_t token);

  /// What still waits, as U+FFFD; the next token starts a new text.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  bool has_previous_ = false;
  uint64_t previous_ = 0;
  std::string waiting_;
};

}  // namespace tokenizers
