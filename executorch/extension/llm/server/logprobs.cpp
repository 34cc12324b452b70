#include <executorch/extension/llm/server/logprobs.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace executorch::extension::llm::server {

using runtime::Error;

namespace {

// JSON has no infinity; this is less than any probability that is told.
constexpr float kNever = -9999.0f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TokenLogprob told_of(std::vector<float> logits, uint64_t token, size_t n_likeliest) {
  const bool certain = std::count(logits.begin(), logits.end(), kInfinity) != 0;
  for (float& logit : logits) {
    if (std::isnan(logit) || (certain && logit != kInfinity)) logit = -kInfinity;
    if (logit == kInfinity) logit = 0;
  }
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  const float log_sum = most + static_cast<float>(std::log(sum));
  const auto logprob = [&](uint64_t i) {
    const float value = logits[i] - log_sum;
    return std::isfinite(value) ? value : kNever;
  };
  TokenLogprob one{token, logprob(token), {}};
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  const size_t n = std::min(n_likeliest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(),
                    [&logits](uint32_t a, uint32_t b) {
                      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                    });
  for (size_t i = 0; i < n; ++i) one.likeliest.emplace_back(order[i], logprob(order[i]));
  return one;
}

Error LogprobRecorder::process(aten::Tensor logits) {
  if (logits.scalar_type() != aten::ScalarType::Float || logits.dim() == 0) {
    return Error::InvalidArgument;
  }
  const size_t n = static_cast<size_t>(logits.size(logits.dim() - 1));
  const float* end = logits.const_data_ptr<float>() + logits.numel();
  logits_.assign(end - n, end);
  return Error::Ok;
}

Error LogprobRecorder::accept(uint64_t token) {
  if (token >= logits_.size()) return Error::InvalidArgument;
  recorded_.push_back(told_of(logits_, token, n_likeliest_));
  return Error::Ok;
}

std::vector<TokenLogprob> LogprobRecorder::take(size_t n_tokens) {
  const size_t n = std::min(recorded_.size(), n_tokens - std::min(n_tokens, n_taken_));
  recorded_.erase(recorded_.begin() + static_cast<ptrdiff_t>(n), recorded_.end());
  n_taken_ += n;
  return std::exchange(recorded_, {});
}

}  // namespace executorch::extension::llm::server
