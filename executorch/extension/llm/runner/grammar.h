#pragma once

#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace tokenizers {
class Tokenizer;
}  // namespace tokenizers

namespace executorch::extension::llm {

class Constraint;
class Vocabulary;

/// The bytes of tokens 0 to n - 1 as constraints want them: none for special and end tokens.
std::vector<std::string> constraint_tokens(const ::tokenizers::Tokenizer& tokenizer, size_t n,
                                           const std::unordered_set<uint64_t>& end_tokens);

/// The constraint that GenerationConfig names, over a tokenizer's tokens. The last one is kept, and
/// what is made of the vocabulary.
class Grammars {
 public:
  /// What keeps a text to `config.grammar`, of type "regex" or "json_schema"; null if there is
  /// none. `n_logits` tokens, and all of the tokenizer's, are known to it: programs may have end
  /// tokens that their tokenizers lack. InvalidArgument, and its place in the log, for a constraint
  /// that cannot be used.
  runtime::Result<std::shared_ptr<LogitProcessor>> processor(
      const GenerationConfig& config, const ::tokenizers::Tokenizer& tokenizer, int64_t n_logits,
      const std::unordered_set<uint64_t>& end_tokens);

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::string type_, text_;
  std::shared_ptr<Constraint> constraint_;
};

}  // namespace executorch::extension::llm
