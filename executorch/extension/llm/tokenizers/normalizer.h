#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <memory>
#include <string>

namespace tokenizers {

/// A step from text to the text that is tokenized; valid UTF-8 on both sides.
class Normalizer {
 public:
  typedef std::shared_ptr<Normalizer> Ptr;
  /// Throws where the text became hundreds of times as long.
  virtual std::string normalize(const std::string& input) const = 0;
  virtual ~Normalizer() = default;
};

/// The normalizer that a tokenizer.json describes; null and a message where it is not understood.
Normalizer::Ptr make_normalizer(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
