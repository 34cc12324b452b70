#include <executorch/cpu/nn/softmax.h>
#include <executorch/extension/llm/sampler/token_choice.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <new>

namespace executorch::extension::llm {
namespace {

using runtime::Error;
using runtime::Result;
using runtime::Span;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Maps floats to integers that are ordered in the same way. NaN is not allowed.
uint32_t ordered(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
}

/// Keeps the entries for which keep(i) is true, in their order; calls keep() once for each, in
/// order.
template <class Keep>
void compact(std::vector<uint32_t>& tokens, std::vector<float>& values, Keep keep) {
  size_t n = 0;
  for (size_t i = 0; i < values.size(); ++i) {  // without branches: most are hard to predict
    const bool kept = keep(i);
    tokens[n] = tokens[i];
    values[n] = values[i];
    n += kept;
  }
  tokens.resize(n);
  values.resize(n);
}

/// A lower bound for the k-th largest logit; -infinity if none is known. The maxima of n >= k
/// blocks are n of the logits, so the k-th largest maximum is such a bound.
float bound_of_largest(Span<const float> logits, size_t k) {
  constexpr size_t kBlock = 64, kMaxBlocks = 4096;
  const size_t block = std::max(kBlock, logits.size() / kMaxBlocks);
  float largest[kMaxBlocks];
  const size_t n = std::min(kMaxBlocks, logits.size() / block);
  if (k > n / 2) return -kInfinity;
  for (size_t i = 0; i < n; ++i) {
    const float* const x = logits.data() + i * block;
    float lanes[8];
    std::fill_n(lanes, 8, -kInfinity);
    for (size_t j = 0; j + 8 <= block; j += 8) {
      for (size_t lane = 0; lane < 8; ++lane) {
        lanes[lane] = lanes[lane] < x[j + lane] ? x[j + lane] : lanes[lane];  // NaN is not larger
      }
    }
    largest[i] = *std::max_element(lanes, lanes + 8);
  }
  std::nth_element(largest, largest + k - 1, largest + n, std::greater<float>());
  return largest[k - 1];
}

/// Keeps the fewest of the largest entries (of equal ones the first) whose measures add up to
/// `limit`; all, if they do not. Finds the smallest kept value digit by digit, from the sums of
/// measures per digit.
template <class Measure>
void keep_largest(std::vector<uint32_t>& tokens, std::vector<float>& values, double limit,
                  Measure measure) {
  struct Digit {
    int shift, bits;
  };
  uint32_t found = 0, mask = 0;
  double missing = limit;
  for (const Digit digit : {Digit{20, 12}, Digit{10, 10}, Digit{0, 10}}) {
    const uint32_t digits = (1u << digit.bits) - 1;
    double sums[1 << 12] = {};
    for (const float value : values) {
      const uint32_t key = ordered(value);
      if ((key & mask) == found) sums[(key >> digit.shift) & digits] += measure(value);
    }
    uint32_t at = digits;
    while (at > 0 && missing > sums[at]) missing -= sums[at--];
    found |= at << digit.shift;
    mask |= digits << digit.shift;
  }
  compact(tokens, values, [&](size_t i) {
    const uint32_t key = ordered(values[i]);
    if (key != found) return key > found;
    if (missing <= 0) return false;
    missing -= measure(values[i]);
    return true;
  });
}

Error no_token_is_left() {
  ET_LOG(Error, "sampling: no token can be chosen: every logit is NaN or -infinity");
  return Error::InvalidArgument;
}

}  // namespace

Result<uint64_t> likeliest_token(Span<const float> logits) {
  size_t best = logits.size();
  float largest = -kInfinity;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > largest) {
      largest = logits[i];
      best = i;
    }
  }
  if (best == logits.size()) return no_token_is_left();
  return static_cast<uint64_t>(best);
}

void RandomTokenChoice::collect(Span<const float> logits, float largest) {
  const bool chooses_k = top_k > 0 && static_cast<uint64_t>(top_k) < logits.size();
  float least = std::numeric_limits<float>::lowest();  // NaN and -infinity are not
  if (largest == kInfinity) {
    least = kInfinity;
  } else if (chooses_k) {
    least = std::max(least, bound_of_largest(logits, static_cast<size_t>(top_k)));
  }
  tokens_.resize(logits.size());
  values_.resize(logits.size());
  size_t n = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    tokens_[n] = static_cast<uint32_t>(i);
    values_[n] = largest == kInfinity ? 0 : logits[i];
    n += logits[i] >= least;
  }
  tokens_.resize(n);
  values_.resize(n);
  if (chooses_k && static_cast<uint64_t>(top_k) < n) {
    keep_largest(tokens_, values_, static_cast<double>(top_k), [](float) { return 1.0; });
  }
}

Error RandomTokenChoice::find_probabilities() {
  const float largest = *std::max_element(values_.begin(), values_.end());
  const float t =
      std::clamp(temperature, std::numeric_limits<float>::min(), std::numeric_limits<float>::max());
  for (float& value : values_) value = (value - largest) / t;
  cpu::HeapScratch scratch;
  cpu::Softmax softmax;
  softmax.n = static_cast<int64_t>(values_.size());
  softmax.x = softmax.y = values_.data();
  if (!softmax.run(scratch)) return Error::MemoryAllocationFailed;
  if (top_p < 1) {
    // A token that stays is followed by others, no likelier, which add up to 1 - top_p with it;
    // half of the bound, as sums are rounded. The likeliest always stays.
    const float least = 0.5f * (1 - top_p) / static_cast<float>(values_.size());
    compact(tokens_, values_, [&](size_t i) { return values_[i] >= least; });
    const float mass = std::max(top_p, std::numeric_limits<float>::min());
    keep_largest(tokens_, values_, mass, [](float p) { return double{p}; });
  }
  if (min_p > 0) {
    const float least = *std::max_element(values_.begin(), values_.end()) * std::min(min_p, 1.0f);
    compact(tokens_, values_, [&](size_t i) { return values_[i] >= least; });
  }
  return Error::Ok;
}

uint64_t RandomTokenChoice::pick(double number) const {
  double sum = 0;
  for (const float value : values_) sum += value;
  double left = number * sum;
  size_t last = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i] <= 0) continue;
    last = i;
    left -= values_[i];
    if (left < 0) break;
  }
  return tokens_[last];
}

Result<uint64_t> RandomTokenChoice::choose(Span<const float> logits, double number) {
  const Result<uint64_t> likeliest = likeliest_token(logits);
  if (!likeliest.ok()) return likeliest.error();
  if (logits.size() > std::numeric_limits<uint32_t>::max()) return Error::InvalidArgument;
  try {
    collect(logits, logits[*likeliest]);
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
  ET_CHECK_OK_OR_RETURN_ERROR(find_probabilities());
  return pick(number);
}

}  // namespace executorch::extension::llm
