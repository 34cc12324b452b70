#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

/// Picks the next token from its logits.
class BasicSampler {
 public:
  /// Greedy: the likeliest token, always.
  BasicSampler() = default;

  /// Draws token i with probability softmax(logits / temperature)[i]; a temperature of 0 is greedy.
  /// The same seed draws the same tokens.
  explicit BasicSampler(float temperature, uint64_t seed = 0)
      : temperature_(temperature), random_(seed) {}

  /// Index into `logits`, which must not be empty; the first of the largest when greedy.
  int64_t sample(const std::vector<float>& logits) {
    const auto largest = std::max_element(logits.begin(), logits.end());
    if (!(temperature_ > 0)) return largest - logits.begin();
    std::vector<double> weights(logits.size());
    std::transform(logits.begin(), logits.end(), weights.begin(), [&](float logit) {
      return std::exp(static_cast<double>(logit - *largest) / temperature_);
    });
    return std::discrete_distribution<int64_t>(weights.begin(), weights.end())(random_);
  }

 private:
  float temperature_ = 0;
  std::mt19937_64 random_;
};
