#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <memory>
#include <string>

namespace tokenizers {

/// A step from text to the text that is tokenized; valid UTF-8 on both sides.
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

/// The normalizer that a tokenizer.json describes; null and a message where it is not understood.
Normalizer::Ptr make_normalizer(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
