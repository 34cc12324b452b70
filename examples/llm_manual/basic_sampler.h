#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

/// Picks the next token greedily.
class BasicSampler {
 public:
  /// The index of the largest logit; the first of them when several are equal.
  int64_t sample(const std::vector<float>& logits) const {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
};
