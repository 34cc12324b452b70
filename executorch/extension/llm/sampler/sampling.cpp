#include <executorch/extension/llm/sampler/sampler.h>
#include <executorch/extension/llm/sampler/sampling.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

namespace executorch::extension::llm {
namespace {

using runtime::Result;
using runtime::Span;

/// Mixes bits such that neighbouring numbers have nothing in common (SplitMix64; Steele, Lea,
/// Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A random number in [0, 1).
double random_number(uint64_t seed, uint64_t index) {
  return static_cast<double>(mixed(mixed(seed) ^ index) >> 11) * 0x1p-53;
}

std::string complaint(const char* name, double value, const char* expected) {
  std::string number = std::to_string(value);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return std::string(name) + " is " + number + ", not " + expected;
}

}  // namespace

uint64_t fresh_seed() {
  static std::atomic<uint64_t> n_calls{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return mixed(mixed(static_cast<uint64_t>(now)) ^ ++n_calls);
}

std::string check_sampling(const SamplingOptions& options, int64_t vocabulary_size) {
  const auto is_share = [](float x) { return x >= 0 && x <= 1; };  // false for NaN
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    return complaint("temperature", options.temperature, "a finite number of 0 or more");
  }
  if (options.top_k < 0) return complaint("top_k", options.top_k, "0 or more");
  if (!is_share(options.top_p)) return complaint("top_p", options.top_p, "0 to 1");
  if (!is_share(options.min_p)) return complaint("min_p", options.min_p, "0 to 1");
  if (!(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty))) {
    return complaint("repetition_penalty", options.repetition_penalty,
                     "a finite number of more than 0");
  }
  if (!std::isfinite(options.presence_penalty)) {
    return complaint("presence_penalty", options.presence_penalty, "a finite number");
  }
  if (!std::isfinite(options.frequency_penalty)) {
    return complaint("frequency_penalty", options.frequency_penalty, "a finite number");
  }
  for (const auto& [token, bias] : options.token_bias) {
    if (std::isnan(bias)) {
      return complaint(("bias of token " + std::to_string(token)).c_str(), bias, "a number");
    }
    if (vocabulary_size >= 0 && token >= static_cast<uint64_t>(vocabulary_size)) {
      return "a bias is given for token " + std::to_string(token) +
             ", which is not in the vocabulary of " + std::to_string(vocabulary_size) + " tokens";
    }
  }
  return "";
}

TokenSampler::TokenSampler(SamplingOptions options) {
  set_options(std::move(options));
}

void TokenSampler::set_options(SamplingOptions options) {
  options_ = std::move(options);
  choice_.temperature = options_.temperature;
  choice_.top_k = options_.top_k;
  choice_.top_p = options_.top_p;
  choice_.min_p = options_.min_p;
}

void TokenSampler::set_prompt(Span<const uint64_t> tokens) {
  occurrences_.clear();
  for (const uint64_t token : tokens) occurrences_[token] = 0;
  length_ = tokens.size();
}

void TokenSampler::accept(uint64_t token) {
  ++occurrences_[token];
  ++length_;
}

void TokenSampler::apply_penalties(Span<float> logits) const {
  for (const auto& [token, bias] : options_.token_bias) {
    if (token < logits.size()) logits[token] += bias;
  }
  const float repetition = options_.repetition_penalty;
  if (repetition == 1 && options_.presence_penalty == 0 && options_.frequency_penalty == 0) return;
  for (const auto& [token, n_chosen] : occurrences_) {
    if (token >= logits.size()) continue;
    float& logit = logits[token];
    if (repetition != 1) logit = logit > 0 ? logit / repetition : logit * repetition;
    if (n_chosen == 0) continue;
    logit -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(n_chosen);
  }
}

Result<uint64_t> TokenSampler::sample(Span<float> logits) {
  apply_penalties(logits);
  const Span<const float> changed(logits.data(), logits.size());
  if (is_greedy()) return likeliest_token(changed);
  return choice_.choose(changed, random_number(options_.seed, length_));
}

}  // namespace executorch::extension::llm
