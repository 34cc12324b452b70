#include <executorch/cpu/nn/attention.h>
#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

using Kind = Attention::Mask;
constexpr float kInf = std::numeric_limits<float>::infinity();

float value_of(Type type, const std::vector<uint8_t>& bytes, int64_t i) {
  return with_type(type, [&](auto x) {
    std::memcpy(&x, &bytes[sizeof(x) * static_cast<size_t>(i)], sizeof(x));
    return static_cast<float>(value(x));
  });
}
void set_value(Type type, std::vector<uint8_t>& bytes, int64_t i, float number) {
  with_type(type, [&](auto x) {
    x = stored<decltype(x)>(number);
    std::memcpy(&bytes[sizeof(x) * static_cast<size_t>(i)], &x, sizeof(x));
  });
}

/// q, k, v side by side in one matrix [batch, position, (q heads, k heads, v heads) * dim].
struct Case {
  Type type = Type::F32;
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 8, keys = 8, dim = 64, value_dim = 64;
  bool causal = false;
  int64_t causal_offset = 0;
  bool safe = true;
  Kind mask_kind = Kind::None;
  bool mask_per_head = false, mask_one_row = false, mask_one_column = false;
  float mask_fill = 0;  // what is written over the mask's hidden blocks and rows
  float spread = 1;
  std::optional<Type> kept = std::nullopt;  // of keys and values

  std::vector<uint8_t> q = {}, kv = {}, mask = {};
  std::vector<uint8_t> out = {};

  Type kept_type() const { return kept.value_or(type); }
  Type mask_type() const {
    return mask_kind == Kind::F16 ? Type::F16 : mask_kind == Kind::BF16 ? Type::BF16 : Type::F32;
  }
  int64_t mask_row() const { return mask_one_row ? 0 : keys; }
  int64_t mask_head() const { return mask_per_head ? queries * keys : 0; }
  float mask_at(int64_t h, int64_t i, int64_t j) const {
    const int64_t at = h * mask_head() + i * mask_row() + (mask_one_column ? 0 : j);
    if (mask_kind == Kind::None) return 0;
    if (mask_kind == Kind::Bool) return mask[static_cast<size_t>(at)] ? 0 : -kInf;
    return value_of(mask_type(), mask, at);
  }

  Attention attention() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, spread);
    const int64_t size = size_of(type), kv_row = kv_heads * (dim + value_dim);
    const int64_t kept_size = size_of(kept_type());
    q.resize(static_cast<size_t>(batch * queries * heads * dim * size));
    kv.resize(static_cast<size_t>(batch * keys * kv_row * kept_size));
    out.assign(static_cast<size_t>(batch * queries * heads * value_dim * size), 0xAA);
    for (int64_t i = 0; i < batch * queries * heads * dim; ++i)
      set_value(type, q, i, normal(random));
    for (int64_t i = 0; i < batch * keys * kv_row; ++i) {
      set_value(kept_type(), kv, i, normal(random));
    }
    if (mask_kind == Kind::Bool) {
      mask.resize(static_cast<size_t>(heads * queries * keys));
      for (auto& m : mask) m = random() % 4 != 0;
    } else if (mask_kind != Kind::None) {
      mask.resize(static_cast<size_t>(heads * queries * keys * size_of(mask_type())));
      for (int64_t i = 0; i < heads * queries * keys; ++i) {
        set_value(mask_type(), mask, i, random() % 4 == 0 ? -kInf : normal(random));
      }
    }
    Attention a;
    a.type = type;
    a.kept = kept;
    a.batch = batch, a.heads = heads, a.kv_heads = kv_heads;
    a.queries = queries, a.keys = keys, a.dim = dim, a.value_dim = value_dim;
    a.q = {q.data(), queries * heads * dim, dim, heads * dim};
    a.k = {kv.data(), keys * kv_row, dim, kv_row};
    a.v = {kv.data() + kv_heads * dim * kept_size, keys * kv_row, value_dim, kv_row};
    a.out = out.data();
    a.out_batch_stride = queries * heads * value_dim;
    a.out_head_stride = value_dim;
    a.out_row_stride = heads * value_dim;
    a.scale = 1 / std::sqrt(static_cast<float>(dim));
    a.causal = causal, a.causal_offset = causal_offset, a.safe = safe;
    a.mask_kind = mask_kind;
    a.mask = mask.data();
    a.mask_head_stride = mask_head();
    a.mask_row_stride = mask_row();
    a.mask_col_stride = mask_one_column ? 0 : 1;
    return a;
  }

  void expect_right() {
    const Attention a = attention();
    run(a);
    const double unit = with_type(type, [](auto x) { return epsilon<decltype(x)>(); });
    const int64_t kv_row = kv_heads * (dim + value_dim), group = heads / kv_heads;
    std::vector<double> p(static_cast<size_t>(keys));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < queries; ++i) {
          double max = -kInf, sum = 0, largest_term = 0;
          for (int64_t j = 0; j < keys; ++j) {
            double s = 0, terms = 0;
            for (int64_t c = 0; c < dim; ++c) {
              const double term =
                  double{value_of(type, q, ((b * queries + i) * heads + h) * dim + c)} *
                  value_of(kept_type(), kv, (b * keys + j) * kv_row + h / group * dim + c);
              s += term;
              terms += std::fabs(term);
            }
            largest_term = std::max(largest_term, terms * a.scale);
            const bool visible = !causal || j <= i + causal_offset;
            p[static_cast<size_t>(j)] = visible ? s * a.scale + mask_at(h, i, j) : -kInf;
            max = std::max(max, p[static_cast<size_t>(j)]);
          }
          for (double& x : p) sum += x = max == -kInf ? 0 : std::exp(x - max);
          // Scores are off by their sums' rounding and the factor log2(e)'s; exp keeps that.
          const double score_error =
              (std::sqrt(static_cast<double>(dim)) + 4) * 0x1p-24 * (largest_term + std::fabs(max));
          for (int64_t c = 0; c < value_dim; ++c) {
            double expected = 0, terms = 0;
            for (int64_t j = 0; j < keys; ++j) {
              const double x =
                  value_of(kept_type(), kv,
                           (b * keys + j) * kv_row + kv_heads * dim + h / group * value_dim + c);
              expected += p[static_cast<size_t>(j)] * x;
              terms += p[static_cast<size_t>(j)] * std::fabs(x);
            }
            const float y = value_of(type, out, ((b * queries + i) * heads + h) * value_dim + c);
            if (sum == 0) {
              if (safe) {
                ASSERT_EQ(y, 0) << "query " << i;
              } else {
                ASSERT_TRUE(std::isnan(y)) << "query " << i;
              }
              continue;
            }
            const double error =
                terms / sum *
                    (2 * score_error + (std::sqrt(static_cast<double>(keys)) + 8) * 0x1p-23) +
                unit * std::fabs(expected / sum) + 0x1p-25;
            ASSERT_NEAR(y, expected / sum, error) << "head " << h << " query " << i << " at " << c;
          }
        }
      }
    }
    expect_same_bits_on_any_threads(a);
  }

  void expect_same_bits_on_any_threads(const Attention& a) {
    const std::vector<uint8_t> first = out;
    for (size_t threads : {1, 2, 3, 17}) {
      ThreadPool pool(threads);
      const UsePool use(&pool);
      std::fill(out.begin(), out.end(), uint8_t{0x55});
      run(a);
      ASSERT_EQ(out, first) << threads << " threads";
    }
  }
};

ET_ON_EACH_TARGET(Attention_);

TEST_P(Attention_, MatchesDoubleAcrossSizes) {
  for (int64_t queries : {1, 3, 7, 17, 65, 300}) {
    for (int64_t keys : {1, 5, 96, 97, 200}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, " << keys << " keys");
      Case{.queries = queries, .keys = keys}.expect_right();
    }
  }
}

TEST_P(Attention_, TakesAnyDim) {
  for (int64_t dim : {1, 31, 32, 33, 72, 80, 96, 128, 129, 256}) {
    for (int64_t queries : {1, 20, 260}) {
      SCOPED_TRACE(testing::Message() << queries << " queries, dim " << dim);
      Case{.queries = queries, .keys = 40, .dim = dim, .value_dim = 2 * dim % 67 + 1}
          .expect_right();
      Case{.queries = queries, .keys = 40, .dim = dim, .value_dim = dim}.expect_right();
    }
  }
}

TEST_P(Attention_, HidesTheFuture) {
  for (int64_t queries : {1, 6, 40, 280}) {
    for (int64_t offset : {-3, 0, 5, 150}) {
      for (bool safe : {true, false}) {
        SCOPED_TRACE(testing::Message() << queries << " queries, offset " << offset);
        Case{.queries = queries,
             .keys = 290,
             .dim = 32,
             .value_dim = 32,
             .causal = true,
             .causal_offset = offset,
             .safe = safe}
            .expect_right();
      }
    }
  }
  // More than one task has.
  Case{.queries = 1100, .keys = 200, .dim = 8, .causal = true, .causal_offset = -30}.expect_right();
}

TEST_P(Attention_, AddsMasksOfEveryKind) {
  for (Kind kind : {Kind::F32, Kind::F16, Kind::BF16, Kind::Bool}) {
    for (int64_t queries : {2, 70, 260}) {
      for (int shape = 0; shape < 4; ++shape) {
        SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " shape " << shape);
        Case{.queries = queries,
             .keys = 130,
             .dim = 32,
             .value_dim = 32,
             .mask_kind = kind,
             .mask_per_head = shape == 1,
             .mask_one_row = shape == 2,
             .mask_one_column = shape == 3}
            .expect_right();
      }
    }
  }
}

TEST_P(Attention_, ComputesHalfTypesInFloat) {
  for (Type type : {Type::F16, Type::BF16}) {
    for (int64_t queries : {1, 50, 260}) {
      Case{.type = type, .queries = queries, .keys = 150}.expect_right();
      Case{.type = type, .queries = queries, .keys = 150, .dim = 33, .value_dim = 35}
          .expect_right();
    }
  }
}

TEST_P(Attention_, ReadsKeysAndValuesKeptInHalf) {
  for (Type kept : {Type::F16, Type::BF16, Type::F32}) {
    for (int64_t queries : {1, 50, 260}) {
      Case{.queries = queries, .keys = 150, .kept = kept}.expect_right();
      Case{.queries = queries, .keys = 150, .dim = 33, .value_dim = 35, .kept = kept}
          .expect_right();
    }
  }
  HeapScratch scratch;
  Case other{.type = Type::F16, .kept = Type::BF16};
  EXPECT_FALSE(other.attention().run(scratch));
}

TEST_P(Attention_, SharesKeyHeads) {
  for (int64_t queries : {1, 2, 30, 260}) {
    Case{.batch = 2, .heads = 6, .kv_heads = 2, .queries = queries, .keys = 50}.expect_right();
    Case{.batch = 2, .heads = 8, .kv_heads = 1, .queries = queries, .keys = 50}.expect_right();
  }
}

// More than are computed together, in several blocks of keys, and the last ones of a batch entry.
TEST_P(Attention_, ComputesManyHeadsOfFewQueriesTogether) {
  Case{.batch = 2,
       .heads = 11,
       .kv_heads = 11,
       .queries = 1,
       .keys = 200,
       .dim = 16,
       .value_dim = 24}
      .expect_right();
  Case{.batch = 2, .heads = 18, .kv_heads = 9, .queries = 2, .keys = 97, .dim = 8, .causal = true}
      .expect_right();
  Case{.heads = 3, .kv_heads = 3, .queries = 1, .keys = 5, .dim = 1032, .value_dim = 8}
      .expect_right();
}

TEST_P(Attention_, KeepsLargeScores) {
  Case{.queries = 1, .keys = 100, .spread = 8}.expect_right();
  Case{.queries = 20, .keys = 100, .spread = 8}.expect_right();
  Case{.queries = 260, .keys = 100, .spread = 8}.expect_right();
}

TEST_P(Attention_, RowsWithoutVisibleKeysAreZeroOrNaN) {
  for (bool safe : {true, false}) {
    for (int64_t queries : {2, 40, 260}) {
      Case c{.queries = queries, .keys = 100, .safe = safe, .mask_kind = Kind::F32};
      const Attention a = c.attention();
      for (int64_t j = 0; j < c.keys; ++j) set_value(Type::F32, c.mask, c.keys + j, -kInf);
      run(a);
      const float y = value_of(Type::F32, c.out, c.heads * c.value_dim);
      EXPECT_EQ(y == 0, safe);
      EXPECT_EQ(std::isnan(y), !safe);
      EXPECT_TRUE(std::isfinite(value_of(Type::F32, c.out, 0)));
    }
  }
}

TEST_P(Attention_, LowestFiniteMaskOverARowGivesTheMean) {
  for (int64_t queries : {2, 40, 260}) {
    Case c{.queries = queries, .keys = 100, .mask_kind = Kind::F32};
    const Attention a = c.attention();
    double mean = 0;
    for (int64_t j = 0; j < c.keys; ++j) {
      set_value(Type::F32, c.mask, j, std::numeric_limits<float>::lowest());
      mean += value_of(Type::F32, c.kv, j * 256 + 128) / 100.0;
    }
    run(a);
    EXPECT_NEAR(value_of(Type::F32, c.out, 0), mean, 1e-6);
  }
}

TEST_P(Attention_, NaNSpreadsToItsRowOnly) {
  for (int64_t queries : {2, 40, 260}) {
    Case c{.queries = queries, .keys = 100};
    const Attention a = c.attention();
    set_value(Type::F32, c.q, c.heads * c.dim, NAN);  // query 1, head 0
    run(a);
    EXPECT_TRUE(std::isnan(value_of(Type::F32, c.out, c.heads * c.value_dim)));
    EXPECT_FALSE(std::isnan(value_of(Type::F32, c.out, 0)));
    EXPECT_FALSE(std::isnan(value_of(Type::F32, c.out, c.heads * c.value_dim + c.value_dim)));
  }
}

TEST_P(Attention_, NaNOfAMaskOfZerosReachesItsRow) {
  for (int64_t queries : {2, 40, 260}) {
    Case c{.queries = queries, .keys = 100, .mask_kind = Kind::F32};
    const Attention a = c.attention();
    for (int64_t i = 0; i < queries * c.keys; ++i) set_value(Type::F32, c.mask, i, 0);
    set_value(Type::F32, c.mask, c.keys + 5, NAN);  // query 1
    run(a);
    EXPECT_TRUE(std::isnan(value_of(Type::F32, c.out, c.heads * c.value_dim))) << queries;
    EXPECT_FALSE(std::isnan(value_of(Type::F32, c.out, 0))) << queries;
  }
}

// An infinite element of a value reaches its column alone; a score of -infinity hides its key.
TEST_P(Attention_, InfinitiesAreNumbers) {
  for (Type kept : {Type::F32, Type::F16}) {
    for (int64_t queries : {2, 40, 260}) {
      Case c{.queries = queries, .keys = 100, .kept = kept};
      const Attention a = c.attention();
      for (int64_t i = 0; i < queries; ++i) set_value(Type::F32, c.q, i * c.heads * c.dim, 1.0f);
      const int64_t kv_row = c.kv_heads * (c.dim + c.value_dim);
      set_value(kept, c.kv, 7 * kv_row, -kInf);                           // key 7, head 0
      set_value(kept, c.kv, 7 * kv_row + c.kv_heads * c.dim + 1, 1e4f);   // value 7, head 0
      set_value(kept, c.kv, 90 * kv_row + c.kv_heads * c.dim + 3, kInf);  // value 90, head 0
      run(a);
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t row = i * c.heads * c.value_dim;
        EXPECT_LT(std::fabs(value_of(Type::F32, c.out, row + 1)), 10) << "query " << i;
        EXPECT_EQ(value_of(Type::F32, c.out, row + 3), kInf) << "query " << i;
        EXPECT_TRUE(std::isfinite(value_of(Type::F32, c.out, row + 4))) << "query " << i;
      }
    }
  }
}

TEST_P(Attention_, KeysOfTheFutureDoNotMatter) {
  for (int64_t queries : {2, 5, 40, 260}) {
    Case c{.queries = queries, .keys = queries, .causal = true};
    const Attention a = c.attention();
    const int64_t last = queries - 1, kv_row = c.kv_heads * (c.dim + c.value_dim);
    set_value(Type::F32, c.kv, last * kv_row, NAN);  // the last key, head 0
    run(a);
    for (int64_t i = 0; i < queries; ++i) {
      const float y = value_of(Type::F32, c.out, i * c.heads * c.value_dim);
      EXPECT_EQ(std::isnan(y), i == last) << "query " << i << " of " << queries;
    }
  }
}

TEST_P(Attention_, NoKeysGiveZeros) {
  Case c{.queries = 9, .keys = 0};
  run(c.attention());
  for (int64_t i = 0; i < 9 * 2 * 64; ++i) ASSERT_EQ(value_of(Type::F32, c.out, i), 0);
}

TEST_P(Attention_, IsRefusedMemoryBeforeAnythingIsWritten) {
  for (int64_t queries : {1, 40, 260}) {
    Case c{.queries = queries, .keys = 40};
    expect_refusal(c.attention());
    for (const uint8_t byte : c.out) ASSERT_EQ(byte, 0xAA);
  }
}

TEST_P(Attention_, TakesEmptySizes) {
  for (int64_t queries : {0, 1, 40}) {
    for (int64_t dim : {0, 5}) {
      for (int64_t value_dim : {0, 5}) {
        for (bool causal : {false, true}) {
          for (int64_t keys : {0, 3}) {
            Case c{.queries = queries,
                   .keys = keys,
                   .dim = dim,
                   .value_dim = value_dim,
                   .causal = causal};
            Attention a = c.attention();
            a.scale = 1;
            run(a);
            for (int64_t i = 0; keys == 0 && i < queries * 2 * value_dim; ++i) {
              ASSERT_EQ(value_of(Type::F32, c.out, i), 0);
            }
          }
        }
      }
    }
  }
}

TEST_P(Attention_, TakesAnyOffsetOfTheFuture) {
  for (int64_t queries : {2, 40, 260}) {
    Case c{.queries = queries, .keys = 50};
    run(c.attention());
    const std::vector<uint8_t> all = c.out;
    c.causal = true;
    c.causal_offset = std::numeric_limits<int64_t>::max();
    run(c.attention());
    EXPECT_EQ(c.out, all);
    c.causal_offset = std::numeric_limits<int64_t>::min();
    run(c.attention());
    EXPECT_EQ(c.out, std::vector<uint8_t>(all.size()));
  }
}

}  // namespace
}  // namespace executorch::cpu
