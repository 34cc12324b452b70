#pragma once

#include <executorch/extension/llm/tokenizers/json.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// Cuts text into the pieces that a model tokenizes one by one, and may change them.
class PreTokenizer {
 public:
  typedef std::shared_ptr<PreTokenizer> Ptr;
  /// The pieces of a whole text.
  virtual std::vector<std::string> pre_tokenize(const std::string& input) const {
    std::vector<std::string> pieces{input};
    size_t front = std::min<size_t>(input.size(), 1);
    split(pieces, front);
    return pieces;
  }
  /// Cuts pieces further. `front` is the number of bytes at the front of the pieces that come from
  /// the first character of the original text; 0 if the pieces do not contain it. False if a
  /// pattern takes too many steps, or the text becomes many times as long. User-defined classes may
  /// override pre_tokenize() alone.
  virtual bool split(std::vector<std::string>& pieces, size_t& front) const {
    (void)front;
    std::vector<std::string> result;
    for (const std::string& piece : pieces) {
      for (std::string& part : pre_tokenize(piece)) result.push_back(std::move(part));
    }
    pieces = std::move(result);
    return true;
  }
  virtual ~PreTokenizer() = default;
};

/// The pre-tokenizer that a tokenizer.json describes; null, with a message, if it is not supported.
PreTokenizer::Ptr make_pre_tokenizer(const Json& config, std::string& message, int depth = 0);

}  // namespace tokenizers
