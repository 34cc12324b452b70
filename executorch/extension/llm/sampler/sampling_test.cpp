#include <executorch/extension/llm/sampler/logit_processor.h>
#include <executorch/extension/llm/sampler/sampling.h>
#include <executorch/extension/llm/sampler/util.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace executorch::extension::llm;
using executorch::aten::BFloat16;
using executorch::aten::Half;
using executorch::extension::make_tensor_ptr;
using executorch::runtime::Error;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(size_t n, uint32_t seed, float scale = 3) {
  std::mt19937 source(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> logits(n);
  for (float& x : logits) x = normal(source);
  return logits;
}

uint64_t sample(std::vector<float> logits, SamplingOptions options,
                const std::vector<uint64_t>& prompt = {}) {
  TokenSampler sampler(std::move(options));
  sampler.set_prompt({prompt.data(), prompt.size()});
  const Result<uint64_t> token = sampler.sample({logits.data(), logits.size()});
  EXPECT_TRUE(token.ok());
  return token.ok() ? *token : UINT64_MAX;
}

SamplingOptions greedy() {
  SamplingOptions options;
  options.temperature = 0;
  return options;
}

/// Which tokens come up in `n` draws, and how often.
std::map<uint64_t, int> draws(const std::vector<float>& logits, SamplingOptions options, int n) {
  std::map<uint64_t, int> counts;
  for (int i = 0; i < n; ++i) {
    options.seed = static_cast<uint64_t>(i);
    ++counts[sample(logits, options)];
  }
  return counts;
}

/// Tokens by falling logit, of equal ones the first.
std::vector<uint64_t> sorted_tokens(const std::vector<float>& logits) {
  std::vector<uint64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint64_t a, uint64_t b) { return logits[a] > logits[b]; });
  return order;
}

/// The tokens that top-k, temperature, top-p and min-p leave, by sorting.
std::set<uint64_t> allowed_tokens(const std::vector<float>& logits,
                                  const SamplingOptions& options) {
  std::vector<uint64_t> order = sorted_tokens(logits);
  if (options.top_k > 0) order.resize(std::min<size_t>(order.size(), options.top_k));
  std::vector<double> p;
  double sum = 0;
  for (uint64_t token : order) {
    p.push_back(std::exp((double{logits[token]} - logits[order[0]]) / options.temperature));
    sum += p.back();
  }
  std::set<uint64_t> allowed;
  double mass = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    // Sums that differ by rounding only from top_p may be read either way.
    if (mass >= options.top_p * sum * (1 + 1e-5)) break;
    if (p[i] >= options.min_p * p[0] * (1 - 1e-5)) allowed.insert(order[i]);
    mass += p[i];
  }
  return allowed;
}

}  // namespace

TEST(Sampling, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(sample({1, 5, 3, 5}, greedy()), 1u);
  EXPECT_EQ(sample({-kInf, -3, kNan}, greedy()), 1u);
  EXPECT_EQ(sample({1, kInf, 2, kInf}, greedy()), 1u);
  SamplingOptions one;
  one.top_k = 1;
  EXPECT_EQ(sample({1, 5, 3}, one), 1u);
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  SamplingOptions options;
  options.temperature = 1;
  constexpr int kDraws = 20000;
  auto counts = draws(logits, options, kDraws);
  const double expected[] = {0.5, 0.3, 0.2};
  for (uint64_t i = 0; i < 3; ++i) {
    // Five standard deviations.
    const double deviation = std::sqrt(kDraws * expected[i] * (1 - expected[i]));
    EXPECT_NEAR(counts[i], kDraws * expected[i], 5 * deviation);
  }
}

TEST(Sampling, KeepsWhatSortingWouldKeep) {
  std::mt19937 source(1);
  for (uint32_t round = 0; round < 60; ++round) {
    auto logits = random_logits(1 + source() % 300, round, 1 + round % 4);
    if (round % 3 == 0) {  // many equal ones
      for (float& x : logits) x = std::round(x);
    }
    SamplingOptions options;
    options.temperature = 0.5f + 0.25f * static_cast<float>(round % 5);
    if (round % 2 == 0) options.top_k = 1 + static_cast<int32_t>(source() % 60);
    if (round % 5 != 0) options.top_p = 0.1f * static_cast<float>(1 + source() % 9);
    if (round % 7 == 0) options.min_p = 0.05f;
    const auto allowed = allowed_tokens(logits, options);
    const auto found = draws(logits, options, 400);
    for (const auto& [token, count] : found) {
      EXPECT_TRUE(allowed.count(token)) << "round " << round << ", token " << token;
    }
    if (allowed.size() <= 3) {
      EXPECT_EQ(found.size(), allowed.size()) << round;
    }
  }
}

TEST(Sampling, TopKOfEqualLogitsTakesTheFirst) {
  SamplingOptions options;
  options.top_k = 3;
  const auto found = draws(std::vector<float>(1000, 0.25f), options, 200);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found.rbegin()->first, 2u);
}

TEST(Sampling, TopPZeroAndMinPOneAreGreedy) {
  const auto logits = random_logits(500, 3);
  const uint64_t best = sorted_tokens(logits)[0];
  SamplingOptions options;
  options.temperature = 2;
  options.top_p = 0;
  EXPECT_EQ(draws(logits, options, 50).size(), 1u);
  EXPECT_EQ(draws(logits, options, 50).begin()->first, best);
  options.top_p = 1;
  options.min_p = 1;
  EXPECT_EQ(draws(logits, options, 50).begin()->first, best);
}

TEST(Sampling, DependsOnSeedAndLengthOfTextOnly) {
  const auto logits = random_logits(4000, 1, 1);
  SamplingOptions options;
  options.temperature = 1;
  options.seed = 7;
  const uint64_t token = sample(logits, options, {1, 2, 3});
  EXPECT_EQ(sample(logits, options, {9, 9, 9}), token);
  EXPECT_NE(sample(logits, options, {1, 2}), token);
  options.seed = 8;
  EXPECT_NE(sample(logits, options, {1, 2, 3}), token);
  // A text that was chosen is like one that was given.
  options.seed = 7;
  TokenSampler grown(options);
  for (uint64_t chosen : {4, 5, 6}) grown.accept(chosen);
  auto copy = logits;
  EXPECT_EQ(*grown.sample({copy.data(), copy.size()}), token);
}

TEST(Sampling, DoesNotDependOnTheNumberOfThreads) {
  auto* const pool = executorch::extension::threadpool::get_threadpool();
  const auto logits = random_logits(150000, 5, 2);
  SamplingOptions options;
  options.top_p = 0.95f;
  options.top_k = 20000;
  std::vector<uint64_t> first;
  for (const size_t n : {1, 2, 4}) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    ASSERT_TRUE(pool->_unsafe_reset_threadpool(n));
#pragma GCC diagnostic pop
    std::vector<uint64_t> tokens;
    for (uint64_t seed = 0; seed < 5; ++seed) {
      options.seed = seed;
      tokens.push_back(sample(logits, options));
    }
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first) << n << " threads";
  }
}

TEST(Sampling, PenaltiesAndBias) {
  SamplingOptions options = greedy();
  options.repetition_penalty = 2;
  EXPECT_EQ(sample({3, 2, 1}, options, {0}), 1u);        // 1.5, 2, 1
  EXPECT_EQ(sample({-1, -3, -1.5f}, options, {0}), 2u);  // -2, -3, -1.5
  options = greedy();
  options.token_bias = {{2, 10.0f}, {1, -kInf}, {77, 5.0f}};
  EXPECT_EQ(sample({3, 20, 1}, options), 2u);

  options = greedy();
  options.presence_penalty = 1.5f;
  options.frequency_penalty = 0.5f;
  TokenSampler sampler(options);
  const std::vector<uint64_t> prompt = {0};
  sampler.set_prompt({prompt.data(), 1});
  std::vector<uint64_t> chosen;
  for (int i = 0; i < 4; ++i) {
    std::vector<float> logits = {5, 4, 0};
    chosen.push_back(*sampler.sample({logits.data(), logits.size()}));
    sampler.accept(chosen.back());
  }
  // 5; then 3 and 4; 3 and 2; 2.5 and 2.
  EXPECT_EQ(chosen, (std::vector<uint64_t>{0, 1, 0, 0}));
}

TEST(Sampling, NanAndInfinity) {
  SamplingOptions options;
  options.temperature = 1;
  auto found = draws({kNan, 1, -kInf, 1, kNan}, options, 100);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.count(1) && found.count(3));
  found = draws({50, kInf, kNan, kInf}, options, 100);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.count(1) && found.count(3));
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(sample({-largest, largest, -largest}, options), 1u);
  options.temperature = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(sample({1, 2, 1.5f}, options), 1u);
}

TEST(Sampling, NothingToChooseIsAnError) {
  executorch::runtime::runtime_init();
  for (float temperature : {0.0f, 1.0f}) {
    SamplingOptions options;
    options.temperature = temperature;
    TokenSampler sampler(options);
    std::vector<float> logits = {kNan, -kInf, kNan};
    EXPECT_EQ(sampler.sample({logits.data(), logits.size()}).error(), Error::InvalidArgument);
    EXPECT_EQ(sampler.sample(Span<float>()).error(), Error::InvalidArgument);
  }
}

TEST(Sampling, OptionsThatCannotBeUsedAreNamed) {
  EXPECT_EQ(check_sampling({}), "");
  SamplingOptions options;
  options.top_p = 1.5f;
  EXPECT_EQ(check_sampling(options), "top_p is 1.5, not 0 to 1");
  options = {};
  options.temperature = kNan;
  EXPECT_NE(check_sampling(options), "");
  options = {};
  options.top_k = -2;
  EXPECT_EQ(check_sampling(options), "top_k is -2, not 0 or more");
  options = {};
  options.repetition_penalty = std::numeric_limits<float>::infinity();
  EXPECT_EQ(check_sampling(options),
            "repetition_penalty is inf, not a finite number of more than 0");
  options = {};
  options.token_bias = {{3, kNan}};
  EXPECT_NE(check_sampling(options), "");
  options.token_bias = {{3, 1.0f}};
  EXPECT_EQ(check_sampling(options), "");
  EXPECT_EQ(check_sampling(options, 4), "");
  EXPECT_EQ(check_sampling(options, 3),
            "a bias is given for token 3, which is not in the vocabulary of 3 tokens");
}

template <class T>
int32_t sampled(std::vector<float> logits, Sampler& sampler) {
  std::vector<T> values(logits.begin(), logits.end());
  return sampler.sample(values.data());
}

TEST(Sampler, TakesEveryElementType) {
  Sampler likeliest(4, 0.0f, 0.9f, 1);
  EXPECT_EQ(sampled<float>({1, 2, 9, 3}, likeliest), 2);
  EXPECT_EQ(sampled<Half>({1, 2, 9, 3}, likeliest), 2);
  EXPECT_EQ(sampled<BFloat16>({1, 2, 9, 3}, likeliest), 2);
  EXPECT_EQ(sampled<uint16_t>({1, 2, 9, 3}, likeliest), 2);
  Sampler random(4, 1.0f, 0.9f, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sampled<Half>({1, 2, 30, 3}, random), 2);
}

TEST(Sampler, TopPAndTopKAndSeed) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  const auto found = [&](Sampler sampler) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 300; ++i) tokens.push_back(sampled<float>(logits, sampler));
    return tokens;
  };
  const auto distinct = [](const std::vector<int32_t>& tokens) {
    return std::set<int32_t>(tokens.begin(), tokens.end());
  };
  EXPECT_EQ(distinct(found(Sampler(4, 1, 0.75f, 1))), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(distinct(found(Sampler(4, 1, 1.0f, 1))), (std::set<int32_t>{0, 1, 2, 3}));
  Sampler three(4, 1, 1.0f, 1);
  three.set_topk(3);
  EXPECT_EQ(distinct(found(three)), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(found(Sampler(4, 1, 1.0f, 5)), found(Sampler(4, 1, 1.0f, 5)));
  EXPECT_NE(found(Sampler(4, 1, 1.0f, 5)), found(Sampler(4, 1, 1.0f, 6)));
  EXPECT_NE(found(Sampler(4, 1, 1.0f, 0)), std::vector<int32_t>(300, 0));
}

TEST(Sampler, TensorsOfOneTwoAndThreeDims) {
  EXPECT_EQ(logits_to_token(*make_tensor_ptr({3}, std::vector<float>{1, 3, 2})), 1);
  EXPECT_EQ(logits_to_token(*make_tensor_ptr({1, 3}, std::vector<float>{1, 3, 2})), 1);
  // The last row counts.
  EXPECT_EQ(logits_to_token(*make_tensor_ptr({1, 2, 3}, std::vector<float>{1, 3, 2, 0, 1, 5})), 2);
  EXPECT_EQ(logits_to_token(*make_tensor_ptr({1, 3}, std::vector<int64_t>{1, 3, 2})), -1);
}

TEST(Sampler, CallsWithSamplersOfTheirOwnDrawDifferentNumbers) {
  const auto logits = make_tensor_ptr({1, 4}, std::vector<float>{1, 1, 1, 1});
  std::map<int32_t, int> counts;
  for (int i = 0; i < 400; ++i) ++counts[logits_to_token(*logits, 1)];
  for (int32_t token = 0; token < 4; ++token) EXPECT_GT(counts[token], 40) << token;
  EXPECT_NE(fresh_seed(), fresh_seed());
}

TEST(Sampler, RowsOfLogits) {
  std::vector<float> row;
  const auto tensor = make_tensor_ptr({1, 2, 2}, std::vector<float>{1, 2, 3, 4});
  ASSERT_EQ(read_logits(*tensor, 0, row), Error::Ok);
  EXPECT_EQ(row, (std::vector<float>{1, 2}));
  ASSERT_EQ(read_logits(*tensor, -1, row), Error::Ok);
  EXPECT_EQ(row, (std::vector<float>{3, 4}));
  EXPECT_EQ(read_logits(*tensor, 2, row), Error::InvalidArgument);
  EXPECT_EQ(read_logits(*make_tensor_ptr({1, 0}, std::vector<float>{}), -1, row),
            Error::InvalidArgument);
}
