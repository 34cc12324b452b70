#pragma once

#include <executorch/extension/llm/sampler/token_choice.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <cstdint>
#include <vector>

namespace executorch::extension::llm {

/// The top-p of Sampler's shorter constructor.
constexpr auto kTopp = 0.9f;

template <typename T>
struct ProbIndex {
  T prob;
  int32_t index;
};

/// A seed from the clock; each call returns another one.
uint64_t fresh_seed();

/// Chooses a token by its logit, with a random number generator of its own. SamplingOptions and
/// TokenSampler (sampling.h) know more.
class Sampler {
 public:
  /// temperature: logits are divided by it; 0, the likeliest token is taken. topp: keeps the fewest
  /// tokens whose probabilities add up to it, if it is between 0 and 1.
  Sampler(int32_t vocab_size, float temperature, float topp, unsigned long long rng_seed)
      // The generator returns only zeros for the seed 0.
      : vocab_size_(vocab_size), state_(rng_seed != 0 ? rng_seed : 0x9e3779b97f4a7c15ull) {
    set_temperature(temperature);
    choice_.top_p = topp > 0 && topp < 1 ? topp : 1;
  }
  /// Top-p of kTopp, and a fresh_seed().
  Sampler(int32_t vocab_size, float temperature)
      : Sampler(vocab_size, temperature, kTopp, fresh_seed()) {}

  int32_t vocab_size() const { return vocab_size_; }
  void set_temperature(float temperature) { choice_.temperature = temperature; }
  /// Chooses among this many of the likeliest tokens; 0, the default: among all.
  void set_topk(int32_t topk) { choice_.top_k = topk; }

  /// Chooses a token by its `vocab_size` logits: float, Half, BFloat16 or uint16_t. Returns 0, with
  /// a message in the log, if none can be chosen.
  template <typename T>
  int32_t sample(T* logits) {
    if (vocab_size_ <= 0 || logits == nullptr) return 0;
    if (!make_room()) return 0;
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = static_cast<float>(logits[i]);
    const runtime::Span<const float> values(logits_.data(), logits_.size());
    const runtime::Result<uint64_t> token =
        choice_.temperature > 0 ? choice_.choose(values, random_number()) : likeliest_token(values);
    return token.ok() ? static_cast<int32_t>(*token) : 0;
  }

 private:
  /// Whether there is memory for `vocab_size_` logits, which is not negative.
  bool make_room();

  /// A random number in [0, 1): xorshift64* (Vigna, "An experimental exploration of Marsaglia's
  /// xorshift generators, scrambled", 2016).
  double random_number() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<double>((state_ * 0x2545f4914f6cdd1dull) >> 11) * 0x1p-53;
  }

  int32_t vocab_size_;
  uint64_t state_;
  RandomTokenChoice choice_;
  std::vector<float> logits_;
};

}  // namespace executorch::extension::llm

namespace executorch::llm {
using ::executorch::extension::llm::kTopp;
}  // namespace executorch::llm

namespace torch::executor {
using ::executorch::extension::llm::ProbIndex;
using ::executorch::extension::llm::Sampler;
}  // namespace torch::executor
