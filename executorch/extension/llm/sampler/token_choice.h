/// Chooses one token by its logit: the part of sampling that knows no text.
#pragma once

#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <cstdint>
#include <vector>

namespace executorch::extension::llm {

/// The index of the largest logit, of equal ones the first; NaN is no number. InvalidArgument if
/// all are NaN or -infinity.
runtime::Result<uint64_t> likeliest_token(runtime::Span<const float> logits);

/// Chooses at random, in time linear in the vocabulary: nothing is sorted. Keeps memory between
/// calls. Fields as in SamplingOptions; temperature > 0.
class RandomTokenChoice {
 public:
  float temperature = 1.0f;
  int64_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;

  /// `number`, in [0, 1), is the random number. NaN counts as -infinity; where logits are +infinity
  /// one of those is chosen. InvalidArgument if no logit is a number or +infinity, or there are
  /// more than 2^32 of them. MemoryAllocationFailed.
  runtime::Result<uint64_t> choose(runtime::Span<const float> logits, double number);

 private:
  void collect(runtime::Span<const float> logits, float largest);
  runtime::Error find_probabilities();
  uint64_t pick(double number) const;

  // Candidates, by token: token and logit, later probability.
  std::vector<uint32_t> tokens_;
  std::vector<float> values_;
};

}  // namespace executorch::extension::llm
