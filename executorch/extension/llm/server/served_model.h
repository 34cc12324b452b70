#pragma once

#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/runner/text_session.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace executorch::extension::llm::server {

/// A text that a model continues. Used by one thread at a time, but for stop().
class ServedText {
 public:
  virtual ~ServedText() = default;
  /// Continues `prompt`, of which what was computed before is not computed again.
  virtual runtime::Result<GenerationResult> generate(const std::vector<uint64_t>& prompt,
                                                     const GenerationOptions& options) = 0;
  /// What text() of the model's memory holds: the last prompt and what followed.
  virtual const std::vector<uint64_t>& tokens() const = 0;
  virtual void stop() = 0;
};

/// What the server asks of a model; tests have one that follows a script. Thread-safe.
class ServedModel {
 public:
  virtual ~ServedModel() = default;
  virtual runtime::Result<std::unique_ptr<ServedText>> create_text() = 0;
  /// Tokens of a prompt, after `n_bos` of those that begin a text.
  virtual runtime::Result<std::vector<uint64_t>> encode(const std::string& text,
                                                        int8_t n_bos) const = 0;
  /// How many of them the model wants before a text that is no conversation.
  virtual int8_t default_n_bos() const = 0;
  virtual std::string decode(uint64_t token) const = 0;
  /// What each token adds to a text, for constraints; special tokens are empty.
  virtual std::vector<std::string> token_bytes() const = 0;
  virtual const std::unordered_set<uint64_t>& end_tokens() const = 0;
  virtual int64_t context_length() const = 0;
  virtual int64_t vocabulary_size() const = 0;
  virtual const ChatTemplate& chat_template() const = 0;
};

}  // namespace executorch::extension::llm::server
