#include <executorch/extension/llm/custom_ops/op_fallback.h>
#include <executorch/extension/llm/custom_ops/op_fast_hadamard_transform.h>
#include <executorch/extension/llm/custom_ops/op_sdpa.h>
#include <executorch/extension/llm/custom_ops/op_tile_crop.h>
#include <executorch/extension/llm/custom_ops/op_update_cache.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_util.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::testing::TensorFactory;
using namespace torch::executor::native;

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
const std::optional<Tensor> kNone;

class CustomOps : public ::testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }

  Tensor numbers(const std::vector<int32_t>& sizes, int seed) {
    size_t n = 1;
    for (int32_t size : sizes) n *= static_cast<size_t>(size);
    std::vector<float> values(n);
    uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
    }
    return floats.make(sizes, values);
  }

  template <class F>
  void expect_refused(const F& call) {
    KernelRuntimeContext ctx;
    call(ctx);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  }

  TensorFactory<ScalarType::Float> floats;
  TensorFactory<ScalarType::Half> halves;
  TensorFactory<ScalarType::Long> longs;
  TensorFactory<ScalarType::Char> chars;
  TensorFactory<ScalarType::Bool> bools;
};

struct Sizes {
  int32_t batch, tokens, capacity, heads, kv_heads, dim;
};

// Attention by its definition, in double. `visible` says which keys a token sees.
template <class F>
std::vector<double> attention(const Tensor& q, const Tensor& k, const Tensor& v, const Sizes& s,
                              double scale, const F& visible) {
  const float *qd = q.const_data_ptr<float>(), *kd = k.const_data_ptr<float>(),
              *vd = v.const_data_ptr<float>();
  std::vector<double> out(static_cast<size_t>(q.numel()));
  for (int b = 0; b < s.batch; ++b) {
    for (int t = 0; t < s.tokens; ++t) {
      for (int h = 0; h < s.heads; ++h) {
        const int group = h / (s.heads / s.kv_heads);
        const size_t row = static_cast<size_t>(((b * s.tokens + t) * s.heads + h) * s.dim);
        std::vector<double> p(static_cast<size_t>(s.capacity));
        double sum = 0;
        for (int j = 0; j < s.capacity; ++j) {
          if (!visible(t, j)) continue;
          const int key = ((b * s.capacity + j) * s.kv_heads + group) * s.dim;
          double dot = 0;
          for (int d = 0; d < s.dim; ++d) dot += double{qd[row + d]} * kd[key + d];
          sum += p[j] = std::exp(dot * scale);
          for (int d = 0; d < s.dim; ++d) out[row + d] += p[j] * vd[key + d];
        }
        for (int d = 0; d < s.dim && sum > 0; ++d) out[row + d] /= sum;
      }
    }
  }
  return out;
}

void expect_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(static_cast<size_t>(found.numel()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found.const_data_ptr<float>()[i], expected[i], tolerance) << "at " << i;
  }
}

TEST_F(CustomOps, AreRegistered) {
  for (const char* name :
       {"llama::update_cache.out", "llama::update_cache_with_indices.out",
        "llama::sdpa_with_kv_cache.out", "llama::custom_sdpa.out",
        "llama::custom_quantized_sdpa.out", "llama::fast_hadamard_transform.out",
        "llama::gated_delta_rule.out", "llama::fallback.out", "preprocess::tile_crop.out"}) {
    EXPECT_TRUE(executorch::runtime::registry_has_op_function(name)) << name;
  }
}

TEST_F(CustomOps, UpdateCacheWritesTheGivenPositionsOnly) {
  Tensor value = floats.make({2, 2, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Tensor cache = floats.full({2, 3, 1, 2}, -1), out = floats.ones({1});
  KernelRuntimeContext ctx;
  update_cache_out(ctx, value, cache, 1, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(cache, floats.make({2, 3, 1, 2}, {-1, -1, 1, 2, 3, 4, -1, -1, 5, 6, 7, 8}));

  Tensor indices = longs.make({2, 2}, {2, 0, 1, 1});
  update_cache_with_indices_out(ctx, value, cache, kMost, indices, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(cache, floats.make({2, 3, 1, 2}, {3, 4, 1, 2, 1, 2, -1, -1, 7, 8, 7, 8}));
}

TEST_F(CustomOps, UpdateCacheRefusesWhatDoesNotFit) {
  Tensor value = floats.ones({1, 2, 1, 2}), cache = floats.zeros({1, 3, 1, 2});
  Tensor out = floats.ones({1});
  for (const int64_t start : {int64_t{2}, int64_t{3}, int64_t{-1}, kLeast, kMost}) {
    expect_refused([&](auto& ctx) { update_cache_out(ctx, value, cache, start, out); });
  }
  Tensor other = halves.ones({1, 2, 1, 2}), heads = floats.ones({1, 2, 2, 2}),
         flat = floats.ones({2, 2}), batch = floats.ones({2, 2, 1, 2});
  for (const Tensor* bad : {&other, &heads, &flat, &batch}) {
    expect_refused([&](auto& ctx) { update_cache_out(ctx, *bad, cache, 0, out); });
  }
  for (const int64_t index : {int64_t{-1}, int64_t{3}, kLeast, kMost}) {
    Tensor indices = longs.make({1, 2}, {0, index});
    expect_refused(
        [&](auto& ctx) { update_cache_with_indices_out(ctx, value, cache, 0, indices, out); });
  }
  Tensor few = longs.zeros({1, 1});
  expect_refused([&](auto& ctx) { update_cache_with_indices_out(ctx, value, cache, 0, few, out); });
  EXPECT_TENSOR_EQ(cache, floats.zeros({1, 3, 1, 2}));
}

TEST_F(CustomOps, NothingIsWrittenForNoTokens) {
  Tensor value = floats.zeros({1, 0, kHuge, kHuge}), cache = floats.zeros({1, 0, kHuge, kHuge});
  Tensor out = floats.ones({1});
  KernelRuntimeContext ctx;
  update_cache_out(ctx, value, cache, 0, out);
  Tensor k = floats.zeros({1, 4, 1, 2}), q = floats.zeros({1, 0, 1, 2}),
         result = floats.zeros({1, 0, 1, 2});
  custom_sdpa_out(ctx, q, k, k, 4, kNone, 0, true, std::nullopt, result);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
}

TEST_F(CustomOps, CausalAttentionSeesEveryEarlierPosition) {
  for (const Sizes s :
       {Sizes{1, 1, 9, 4, 2, 8}, Sizes{2, 3, 16, 6, 1, 4}, Sizes{1, 40, 70, 2, 2, 33}}) {
    Tensor q = numbers({s.batch, s.tokens, s.heads, s.dim}, 1),
           k = numbers({s.batch, s.capacity, s.kv_heads, s.dim}, 2),
           v = numbers({s.batch, s.capacity, s.kv_heads, s.dim}, 3);
    Tensor out = floats.zeros({s.batch, s.tokens, s.heads, s.dim});
    for (int start = 0; start + s.tokens <= s.capacity; start += 5) {
      for (const bool causal : {true, false}) {
        KernelRuntimeContext ctx;
        custom_sdpa_out(ctx, q, k, v, start, kNone, 0, causal, std::nullopt, out);
        EXPECT_EQ(ctx.failure_state(), Error::Ok);
        const int keys = start + s.tokens;
        expect_near(
            out,
            attention(q, k, v, s, 1 / std::sqrt(s.dim),
                      [&](int t, int j) { return j < keys && (!causal || j <= t + start); }),
            2e-6);
      }
    }
  }
}

TEST_F(CustomOps, AMaskSaysWhatIsVisible) {
  const Sizes s = {1, 3, 7, 2, 1, 4};
  Tensor q = numbers({1, 3, 2, 4}, 4), k = numbers({1, 7, 1, 4}, 5), v = numbers({1, 7, 1, 4}, 6);
  Tensor out = floats.zeros({1, 3, 2, 4});
  for (const int columns : {7, 5}) {
    std::vector<float> added;
    std::vector<uint8_t> shown;
    const auto visible = [&](int t, int j) { return j < columns && t > 0 && (t + j) % 3 != 0; };
    for (int t = 0; t < 3; ++t) {
      for (int j = 0; j < columns; ++j) {
        added.push_back(visible(t, j) ? 0.0f : -INFINITY);
        shown.push_back(visible(t, j) ? 1 : 0);
      }
    }
    // Token 0 sees nothing, which gives zeros.
    const auto expected = attention(q, k, v, s, 0.25, visible);
    KernelRuntimeContext ctx;
    custom_sdpa_out(ctx, q, k, v, 1, floats.make({3, columns}, added), 0, false, 0.25, out);
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
    expect_near(out, expected, 2e-6);
    std::vector<bool> bits(shown.begin(), shown.end());
    Tensor mask = bools.zeros({3, columns});
    std::copy(bits.begin(), bits.end(), mask.mutable_data_ptr<bool>());
    custom_sdpa_out(ctx, q, k, v, 1, mask, 0, false, 0.25, out);
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
    expect_near(out, expected, 2e-6);
  }
}

TEST_F(CustomOps, AttentionRefusesWhatDoesNotFit) {
  Tensor q = floats.ones({1, 2, 4, 2}), k = floats.ones({1, 5, 2, 2}),
         v = floats.ones({1, 5, 2, 2});
  Tensor out = floats.zeros({1, 2, 4, 2});
  for (const int64_t start : {int64_t{4}, int64_t{-1}, kLeast, kMost}) {
    expect_refused([&](auto& ctx) {
      custom_sdpa_out(ctx, q, k, v, start, kNone, 0, true, std::nullopt, out);
    });
  }
  const std::optional<Tensor> mask = floats.zeros({2, 5});
  expect_refused(
      [&](auto& ctx) { custom_sdpa_out(ctx, q, k, v, 0, mask, 0, true, std::nullopt, out); });
  Tensor wide = floats.zeros({2, 6}), tall = floats.zeros({3, 5}), deep = floats.zeros({1, 2, 5}),
         whole = longs.zeros({2, 5}), half = halves.zeros({2, 5});
  for (const Tensor* bad : {&wide, &tall, &deep, &whole, &half}) {
    expect_refused([&](auto& ctx) {
      custom_sdpa_out(ctx, q, k, v, 0, std::optional<Tensor>(*bad), 0, false, std::nullopt, out);
    });
  }
  Tensor three = floats.ones({1, 5, 3, 2}), shorter = floats.ones({1, 4, 2, 2}),
         none = floats.ones({1, 5, 0, 2}), other = halves.ones({1, 5, 2, 2});
  for (const Tensor* bad : {&three, &none, &other}) {
    expect_refused([&](auto& ctx) {
      custom_sdpa_out(ctx, q, *bad, *bad, 0, kNone, 0, true, std::nullopt, out);
    });
  }
  expect_refused([&](auto& ctx) {
    custom_sdpa_out(ctx, q, k, shorter, 0, kNone, 0, true, std::nullopt, out);
  });
}

TEST_F(CustomOps, SdpaWithCacheWritesThenReads) {
  const Sizes s = {1, 2, 6, 2, 2, 4};
  Tensor q = numbers({1, 2, 2, 4}, 7), k = numbers({1, 2, 2, 4}, 8), v = numbers({1, 2, 2, 4}, 9);
  Tensor keys = numbers({1, 6, 2, 4}, 10), values = numbers({1, 6, 2, 4}, 11);
  Tensor out = floats.zeros({1, 2, 2, 4});
  KernelRuntimeContext ctx;
  sdpa_with_kv_cache_out(ctx, q, k, v, keys, values, 3, 2, kNone, 0, true, std::nullopt, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_EQ(keys.const_data_ptr<float>()[3 * 8], k.const_data_ptr<float>()[0]);
  EXPECT_EQ(values.const_data_ptr<float>()[5 * 8 - 1], v.const_data_ptr<float>()[15]);
  expect_near(out, attention(q, keys, values, s, 0.5, [](int t, int j) { return j <= t + 3; }),
              2e-6);

  const Tensor before =
      floats.make({1, 6, 2, 4}, std::vector<float>(keys.const_data_ptr<float>(),
                                                   keys.const_data_ptr<float>() + keys.numel()));
  for (const auto& [start, n] : {std::pair<int64_t, int64_t>{5, 2}, {-1, 2}, {kMost, 2}, {0, 1}}) {
    expect_refused([&, start = start, n = n](auto& ctx2) {
      sdpa_with_kv_cache_out(ctx2, q, q, v, keys, values, start, n, kNone, 0, true, std::nullopt,
                             out);
    });
  }
  EXPECT_TENSOR_EQ(keys, before);
}

TEST_F(CustomOps, FlashAttentionCountsBothFromZero) {
  Tensor q = numbers({1, 1, 2, 4}, 12), k = numbers({1, 1, 3, 4}, 13),
         v = numbers({1, 1, 3, 4}, 14);
  Tensor out = floats.zeros({1, 1, 2, 4});
  KernelRuntimeContext ctx;
  flash_attention_kernel_out(ctx, q, k, v, kNone, 0, true, std::nullopt, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  // With one head, [tokens, heads] and [heads, tokens] are the same numbers.
  expect_near(out, attention(q, k, v, {1, 2, 3, 1, 1, 4}, 0.5, [](int t, int j) { return j <= t; }),
              2e-6);
}

struct Quantized {
  Tensor values, scales, zeros, floats;
};

TEST_F(CustomOps, QuantizedAttentionIsThatOfTheDequantizedRows) {
  const Sizes s = {2, 3, 9, 4, 2, 8};
  const auto quantized = [&](std::vector<int32_t> sizes, int seed) {
    Tensor random = numbers(sizes, seed);
    std::vector<int8_t> values;
    std::vector<float> result, scales;
    std::vector<int8_t> zeros;
    for (ssize_t i = 0; i < random.numel(); ++i) {
      if (i % s.dim == 0) {
        scales.push_back(0.01f + 0.001f * static_cast<float>(i % 7));
        zeros.push_back(static_cast<int8_t>(i % 11 - 5));
      }
      values.push_back(static_cast<int8_t>(random.const_data_ptr<float>()[i] * 120));
      result.push_back(static_cast<float>(values.back() - zeros.back()) * scales.back());
    }
    std::vector<int32_t> rows = sizes;
    rows.back() = 1;
    return Quantized{chars.make(sizes, values), floats.make(rows, scales), chars.make(rows, zeros),
                     floats.make(sizes, result)};
  };
  Quantized q = quantized({2, 3, 4, 8}, 15), k = quantized({2, 9, 2, 8}, 16),
            v = quantized({2, 9, 2, 8}, 17);
  Tensor out = floats.zeros({2, 3, 4, 8});
  KernelRuntimeContext ctx;
  const auto expected = attention(q.floats, k.floats, v.floats, s, 1 / std::sqrt(8),
                                  [](int t, int j) { return j <= t + 4; });
  custom_quantized_sdpa_out(ctx, q.values, k.values, v.values, 4, kNone, 0, true, std::nullopt,
                            q.zeros, q.scales, k.zeros, k.scales, v.zeros, v.scales, false, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  expect_near(out, expected, 2e-5);
  custom_quantized_sdpa_out(ctx, q.floats, k.values, v.values, 4, kNone, 0, true, std::nullopt,
                            kNone, kNone, k.zeros, k.scales, v.zeros, v.scales, false, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  expect_near(out, expected, 2e-5);

  expect_refused([&](auto& c) {
    custom_quantized_sdpa_out(c, q.values, k.values, v.values, 4, kNone, 0, true, std::nullopt,
                              q.zeros, q.scales, k.zeros, k.scales, v.zeros, kNone, false, out);
  });
  expect_refused([&](auto& c) {
    custom_quantized_sdpa_out(c, q.values, k.values, v.values, 4, kNone, 0, true, std::nullopt,
                              q.zeros, q.scales, k.zeros, q.scales, v.zeros, v.scales, false, out);
  });
  expect_refused([&](auto& c) {
    custom_quantized_sdpa_out(c, q.values, k.values, v.values, kMost, kNone, 0, true, std::nullopt,
                              q.zeros, q.scales, k.zeros, k.scales, v.zeros, v.scales, false, out);
  });
}

TEST_F(CustomOps, HadamardTransformsAreOrthogonal) {
  for (const int32_t n : {1, 2, 8, 64, 28, 56, 28 * 8}) {
    Tensor eye = floats.zeros({n, n}), once = floats.zeros({n, n});
    for (int32_t i = 0; i < n; ++i) eye.mutable_data_ptr<float>()[i * n + i] = 1;
    KernelRuntimeContext ctx;
    fast_hadamard_transform_out(ctx, eye, once);
    EXPECT_EQ(ctx.failure_state(), Error::Ok);
    const float* rows = once.const_data_ptr<float>();
    const double length = n % 28 == 0 ? 28 : 1;
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t b = 0; b < n; ++b) {
        double dot = 0;
        for (int32_t i = 0; i < n; ++i) dot += double{rows[a * n + i]} * rows[b * n + i];
        ASSERT_NEAR(dot, a == b ? length : 0, 1e-4) << n << ": rows " << a << " and " << b;
      }
    }
  }
  for (const int32_t n : {3, 12, 27, 84}) {
    Tensor x = floats.ones({2, n}), out = floats.ones({2, n});
    expect_refused([&](auto& ctx) { fast_hadamard_transform_out(ctx, x, out); });
  }
}

TEST_F(CustomOps, GatedDeltaRuleFollowsItsDefinition) {
  constexpr int kHeads = 3, kTokens = 4, kKeys = 5, kValues = 2;
  Tensor q = numbers({1, kHeads, kTokens, kKeys}, 18), k = numbers({1, kHeads, kTokens, kKeys}, 19),
         v = numbers({1, kHeads, kTokens, kValues}, 20),
         decay = numbers({1, kHeads, kTokens, kKeys}, 21), beta = numbers({1, kHeads, kTokens}, 22),
         state = numbers({1, kHeads, kKeys, kValues}, 23);
  Tensor out = floats.zeros({1, kHeads, kTokens, kValues}),
         final_state = floats.zeros({1, kHeads, kKeys, kValues});
  KernelRuntimeContext ctx;
  gated_delta_rule_out(ctx, q, k, v, decay, beta, state, out, final_state);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  const auto at = [](const Tensor& t, int row, int column, int columns) {
    return double{t.const_data_ptr<float>()[row * columns + column]};
  };
  for (int h = 0; h < kHeads; ++h) {
    double s[kKeys][kValues];
    for (int i = 0; i < kKeys; ++i) {
      for (int j = 0; j < kValues; ++j) s[i][j] = at(state, h * kKeys + i, j, kValues);
    }
    for (int t = 0; t < kTokens; ++t) {
      const int row = h * kTokens + t;
      for (int j = 0; j < kValues; ++j) {
        double predicted = 0, read = 0;
        for (int i = 0; i < kKeys; ++i) {
          predicted += (s[i][j] *= at(decay, row, i, kKeys)) * at(k, row, i, kKeys);
        }
        const double delta = (at(v, row, j, kValues) - predicted) * at(beta, row, 0, 1);
        for (int i = 0; i < kKeys; ++i) {
          read += (s[i][j] += at(k, row, i, kKeys) * delta) * at(q, row, i, kKeys);
        }
        EXPECT_NEAR(at(out, row, j, kValues), read, 1e-5);
      }
    }
    for (int i = 0; i < kKeys; ++i)
      EXPECT_NEAR(at(final_state, h * kKeys + i, 1, kValues), s[i][1], 1e-5);
  }
  expect_refused(
      [&](auto& c) { gated_delta_rule_out(c, q, k, v, decay, beta, state, out, state); });
  expect_refused(
      [&](auto& c) { gated_delta_rule_out(c, q, v, v, decay, beta, state, out, final_state); });
  expect_refused(
      [&](auto& c) { gated_delta_rule_out(c, q, k, beta, decay, beta, state, out, final_state); });
}

TEST_F(CustomOps, HeadsOfQueriesShareTheStatesOfTheDeltaRule) {
  Tensor k = numbers({1, 2, 3, 4}, 24), v = numbers({1, 2, 3, 5}, 25),
         decay = numbers({1, 2, 3}, 26), beta = numbers({1, 2, 3}, 27),
         state = numbers({1, 2, 4, 5}, 28), q = numbers({1, 4, 3, 4}, 29);
  // One decay for each row of the state, all equal, and queries of one head each.
  Tensor rows = floats.zeros({1, 2, 3, 4}), out = floats.zeros({1, 4, 3, 5}),
         one = floats.zeros({1, 2, 3, 5}), final_state = floats.zeros({1, 2, 4, 5}),
         same_state = floats.zeros({1, 2, 4, 5}), half = floats.zeros({1, 2, 3, 4});
  for (int i = 0; i < 24; ++i) {
    rows.mutable_data_ptr<float>()[i] = decay.const_data_ptr<float>()[i / 4];
  }
  KernelRuntimeContext ctx;
  gated_delta_rule_out(ctx, q, k, v, decay, beta, state, out, final_state);
  ASSERT_EQ(ctx.failure_state(), Error::Ok);
  for (int which = 0; which < 2; ++which) {
    for (int h = 0; h < 2; ++h) {
      std::copy_n(q.const_data_ptr<float>() + (2 * h + which) * 12, 12,
                  half.mutable_data_ptr<float>() + h * 12);
    }
    gated_delta_rule_out(ctx, half, k, v, rows, beta, state, one, same_state);
    ASSERT_EQ(ctx.failure_state(), Error::Ok);
    EXPECT_TENSOR_EQ(final_state, same_state);
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 15; ++i) {
        EXPECT_FLOAT_EQ(out.const_data_ptr<float>()[(2 * h + which) * 15 + i],
                        one.const_data_ptr<float>()[h * 15 + i]);
      }
    }
  }
  Tensor uneven = numbers({1, 3, 3, 4}, 30), flat = numbers({2, 3}, 31),
         none = floats.zeros({1, 0, 3, 4});
  for (const Tensor* bad : {&uneven, &flat}) {
    expect_refused([&](auto& c) {
      gated_delta_rule_out(c, *bad, k, v, decay, beta, state, out, final_state);
    });
  }
  expect_refused([&](auto& c) {
    gated_delta_rule_out(c, q, none, none, none, beta, state, out, final_state);
  });
}

TEST_F(CustomOps, TilesAreCutRowAfterRow) {
  Tensor image = floats.zeros({1, 2, 4}), out = floats.zeros({2, 1, 2, 2});
  for (int i = 0; i < 8; ++i) image.mutable_data_ptr<float>()[i] = static_cast<float>(i);
  KernelRuntimeContext ctx;
  tile_crop_out_impl(ctx, image, 2, out);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(out, floats.make({2, 1, 2, 2}, {0, 1, 4, 5, 2, 3, 6, 7}));
  for (const int64_t size : {int64_t{0}, int64_t{-2}, int64_t{3}, kMost, kLeast}) {
    expect_refused([&](auto& c) { tile_crop_out_impl(c, image, size, out); });
  }
  Tensor copy = floats.zeros({1, 2, 4});
  fallback_out(ctx, image, copy);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(copy, image);
}

}  // namespace
