#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <memory>
#include <string>
#include <vector>

namespace tokenizers {

/// Cuts text into the pieces that a model tokenizes one by one, and may change them.
class PreTokenizer {
 public:
  typedef std::shared_ptr<PreTokenizer> Ptr;
  std::vector<std::string> pre_tokenize(const std::string& input) const {
    std::vector<std::string> pieces{input};
    split(pieces, true);
    return pieces;
  }
  /// `first`: the first piece is where the text starts. False where a pattern took too many
  /// steps, or the text became many times as long.
  virtual bool split(std::vector<std::string>& pieces, bool first) const = 0;
  virtual ~PreTokenizer() = default;
};

/// The pre-tokenizer that a tokenizer.json describes; null and a message where it is not
/// understood.
PreTokenizer::Ptr make_pre_tokenizer(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
