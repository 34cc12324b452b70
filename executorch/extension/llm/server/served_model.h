#pragma once

#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/runner/text_session.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm::server {

/// A session of a model with its text. Not thread-safe, except stop().
class ServedText {
 public:
  virtual ~ServedText() = default;
  /// Continues `prompt`. The beginning that `prompt` has in common with the session's text is not
  /// computed again.
  virtual runtime::Result<GenerationResult> generate(const std::vector<uint64_t>& prompt,
                                                     const GenerationOptions& options) = 0;
  /// TextSession::score() of `prompt`.
  virtual runtime::Error score(const std::vector<uint64_t>& prompt,
                               const TextSession::OnLogits& on_logits) = 0;
  /// The session's text: the last prompt and the tokens that followed it.
  virtual const std::vector<uint64_t>& tokens() const = 0;
  virtual void stop() = 0;
};

/// The interface through which the server uses a model; tests implement it with a script.
/// Thread-safe.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual runtime::Result<std::unique_ptr<ServedText>> create_text() = 0;
  /// Encodes a prompt, with `n_bos` beginning-of-text tokens in front.
  virtual runtime::Result<std::vector<uint64_t>> encode(const std::string& text,
                                                        int8_t n_bos) const = 0;
  /// How many beginning-of-text tokens the model expects before a prompt that is no conversation.
  virtual int8_t default_n_bos() const = 0;
  virtual std::string decode(uint64_t token) const = 0;
  /// The bytes that each token adds to a text, for constraints; special tokens have none.
  virtual std::vector<std::string> token_bytes() const = 0;
  /// Tokens that end an answer: those that end any text, and the chat template's.
  virtual const std::unordered_set<uint64_t>& end_tokens() const = 0;
  virtual int64_t context_length() const = 0;
  virtual int64_t vocabulary_size() const = 0;
  virtual const ChatTemplate& chat_template() const = 0;
};

}  // namespace executorch::extension::llm::server
