#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <memory>
#include <string>
#include <vector>

namespace tokenizers {

/// From the spellings of tokens to pieces of text, which are put together.
class TokenDecoder {
 public:
  typedef std::shared_ptr<TokenDecoder> Ptr;
  virtual std::vector<std::string> decode(const std::vector<std::string>& tokens) const = 0;
  virtual ~TokenDecoder() = default;
};

/// The decoder that a tokenizer.json describes; null and a message where it is not understood.
TokenDecoder::Ptr make_decoder(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
