/// From logits to the next token, with everything that is usually asked of it.
#pragma once

#include <executorch/extension/llm/sampler/token_choice.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>
#include <string>
#include <unordered_map>

namespace executorch::extension::llm {

/// How a token is chosen. In this order: bias and penalties, top_k, temperature, top_p, min_p.
struct SamplingOptions {
  /// Logits are divided by it. 0, or less: the likeliest token, and the rest is without meaning.
  float temperature = 0.8f;
  /// Keeps this many of the likeliest tokens. 0: all.
  int32_t top_k = 0;
  /// Keeps the fewest of the likeliest tokens whose probabilities add up to it. 1: all.
  float top_p = 1.0f;
  /// Keeps tokens that are at least this times as likely as the likeliest. 0: all.
  float min_p = 0.0f;
  /// Divides positive logits, and multiplies negative ones, of tokens that the text has, prompt
  /// included. 1: nothing.
  float repetition_penalty = 1.0f;
  /// Subtracted from the logit of a token that was chosen before.
  float presence_penalty = 0.0f;
  /// Subtracted from a token's logit for each time that it was chosen.
  float frequency_penalty = 0.0f;
  /// Added to logits of tokens, which must be in the vocabulary.
  std::unordered_map<uint64_t, float> token_bias;
  /// Random numbers depend on the seed and the length of the text, on nothing else.
  uint64_t seed = 0;
};

/// Empty if `options` can be used; else what is wrong, as in "top_p is 1.5, not 0 to 1".
/// `vocabulary_size` is the number of logits; -1: it is not known, and any token may have a bias.
std::string check_sampling(const SamplingOptions& options, int64_t vocabulary_size = -1);

/// Chooses tokens. Not thread-safe. The choice depends on logits, options and text only.
class TokenSampler {
 public:
  /// `options` should have passed check_sampling(); invalid values are clamped.
  explicit TokenSampler(SamplingOptions options);

  /// Sets the text before the first choice.
  void set_prompt(runtime::Span<const uint64_t> tokens);

  /// The next token; accept() it to go on. Writes over `logits`, one for each token of the
  /// vocabulary. NaN is read as -infinity, which excludes a token; of several that are +infinity
  /// one is chosen. InvalidArgument if that leaves none. MemoryAllocationFailed.
  ///
  /// Linear in the vocabulary: nothing is sorted.
  runtime::Result<uint64_t> sample(runtime::Span<float> logits);

  /// Appends a token to the text.
  void accept(uint64_t token);

  /// Changes the options, not the text.
  void set_options(SamplingOptions options);
  const SamplingOptions& options() const { return options_; }
  /// Whether sample() takes the likeliest token.
  bool is_greedy() const { return options_.temperature <= 0 || options_.top_k == 1; }

 private:
  void apply_penalties(runtime::Span<float> logits) const;

  SamplingOptions options_;
  RandomTokenChoice choice_;
  /// How often each token of the text was chosen; 0: it is in the prompt only.
  std::unordered_map<uint64_t, int64_t> occurrences_;
  uint64_t length_ = 0;
};

}  // namespace executorch::extension::llm
