#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <memory>
#include <string>

namespace tokenizers {

/// Changes a text before it is tokenized; input and result are valid UTF-8.
class Normalizer {
 public:
  typedef std::shared_ptr<Normalizer> Ptr;
  /// Throws where the text became hundreds of times as long, or a pattern took too many steps.
  virtual std::string normalize(const std::string& input) const = 0;
  /// How many bytes at the front of normalize(input) come from the first `bytes` of `input`.
  virtual size_t front(const std::string& input, size_t bytes) const {
    return normalize(input.substr(0, bytes)).size();
  }
  virtual ~Normalizer() = default;
};

/// The normalizer that a tokenizer.json describes; null, with a message, if it is not supported.
Normalizer::Ptr make_normalizer(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
