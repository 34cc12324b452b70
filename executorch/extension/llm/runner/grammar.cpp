#include <executorch/extension/llm/runner/grammar.h>

#include <executorch/extension/llm/sampler/constraint/constraint.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>

namespace executorch::extension::llm {

using runtime::Error;

std::vector<std::string> constraint_tokens(const ::tokenizers::Tokenizer& tokenizer, size_t n,
                                           const std::unordered_set<uint64_t>& end_tokens) {
  std::vector<std::string> tokens(n);
  for (size_t i = 0; i < n; ++i) {
    if (tokenizer.is_special(i) || end_tokens.count(i) != 0) continue;
    auto bytes = tokenizer.token_bytes(i);
    if (bytes.ok()) tokens[i] = std::move(*bytes);
  }
  return tokens;
}

runtime::Result<std::shared_ptr<LogitProcessor>> Grammars::processor(
    const GenerationConfig& config, const ::tokenizers::Tokenizer& tokenizer, int64_t n_logits,
    const std::unordered_set<uint64_t>& end_tokens) {
  if (config.grammar.empty()) return std::shared_ptr<LogitProcessor>();
  if (vocabulary_ == nullptr) {
    const auto n = static_cast<size_t>(std::max<int64_t>({0, n_logits, tokenizer.vocab_size()}));
    vocabulary_ = std::make_shared<const Vocabulary>(constraint_tokens(tokenizer, n, end_tokens));
  }
  if (constraint_ == nullptr || type_ != config.grammar_type || text_ != config.grammar) {
    std::string cause;
    constraint_ =
        Constraint::compile(config.grammar_type, config.grammar, vocabulary_, end_tokens, cause);
    ET_CHECK_OR_RETURN_ERROR(constraint_ != nullptr, InvalidArgument,
                             "the grammar cannot be used: %s", cause.c_str());
    type_ = config.grammar_type;
    text_ = config.grammar;
  }
  return std::shared_ptr<LogitProcessor>(std::make_shared<ConstraintProcessor>(constraint_));
}

}  // namespace executorch::extension::llm
