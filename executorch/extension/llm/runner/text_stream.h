/// Text from tokens, as it may be shown while it grows.
#pragma once

#include <executorch/extension/llm/tokenizers/stream_decoder.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::llm {

/// Decodes token after token. Its texts are valid UTF-8 with whole characters, without special
/// tokens and without anything that may be a part of a stop string.
class TextStream {
 public:
  /// `tokenizer` must outlive it; null: there is no text. `previous`: the tokens before the first,
  /// or the last of them; they may end inside a character, which then comes whole.
  TextStream(const ::tokenizers::Tokenizer* tokenizer, const std::vector<uint64_t>& previous,
             std::vector<std::string> stop_strings = {});

  /// The text that may be shown after adding a token. InvalidArgument for tokens that the tokenizer
  /// does not know.
  runtime::Result<std::string> add(uint64_t token);
  /// The text that was held back, up to the first stop string; an incomplete character becomes
  /// U+FFFD. Nothing if is_stopped() already.
  std::string finish();
  /// Whether a stop string was found, by add() or finish(). No token may be added then.
  bool is_stopped() const { return is_stopped_; }

 private:
  std::optional<::tokenizers::StreamDecoder> decoder_;
  std::vector<std::string> stop_strings_;
  /// Text that was decoded, but not returned yet.
  std::string held_;
  bool is_stopped_ = false;
};

}  // namespace executorch::extension::llm
