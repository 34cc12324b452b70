#pragma once

#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/extension/llm/server/api.h>

namespace executorch::extension::llm::server {

/// How likely `token` is, and which are the `n_likeliest` likeliest, by logits as the sampler reads
/// them: NaN is never chosen, and where there are infinities one of them is. `token` must be one of
/// theirs.
TokenLogprob told_of(std::vector<float> logits, uint64_t token, size_t n_likeliest);

/// Notes how likely each chosen token was, and which were the likeliest. Changes nothing; stands
/// behind constraints, so what they exclude has no probability.
class LogprobRecorder : public LogitProcessor {
 public:
  explicit LogprobRecorder(int n_likeliest) : n_likeliest_(static_cast<size_t>(n_likeliest)) {}
  runtime::Error process(aten::Tensor logits) override;
  runtime::Error accept(uint64_t token) override;

  /// What was recorded since the last call, up to the first `n_tokens` tokens of the answer: the
  /// token that ends the text was recorded, but is not part of the answer.
  std::vector<TokenLogprob> take(size_t n_tokens = SIZE_MAX);

 private:
  const size_t n_likeliest_;
  std::vector<float> logits_;
  std::vector<TokenLogprob> recorded_;
  size_t n_taken_ = 0;
};

}  // namespace executorch::extension::llm::server
