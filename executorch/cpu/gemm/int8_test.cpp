#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/kernels.h>
#include <executorch/cpu/gemm/kernels_testing.h>
#include <executorch/cpu/machine.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

/// A product with random operands, and the same in double.
struct Example {
  int64_t m, n, k;
  bool nibbles;
  int64_t group_size;
  std::mt19937 random{1};
  std::vector<int8_t> a;
  std::vector<int> weights;  // [n, k]
  std::vector<uint8_t> b;
  std::vector<RowQuantization> rows;
  std::vector<float> scales, bias, group_sums;
  std::vector<BF16> group_scales;
  std::vector<int32_t> sums;

  Example(int64_t m_, int64_t n_, int64_t k_, bool nibbles_ = false, int64_t group_size_ = 0)
      : m(m_), n(n_), k(k_), nibbles(nibbles_), group_size(group_size_) {
    std::uniform_real_distribution<float> real(0.01f, 0.1f);
    for (int64_t i = 0; i < m * k; ++i) a.push_back(static_cast<int8_t>(random()));
    for (int64_t i = 0; i < m; ++i) {
      rows.push_back({real(random), static_cast<int32_t>(random() % 256) - 128});
    }
    const int64_t row_bytes = nibbles ? (k + 1) / 2 : k;
    b.resize(static_cast<size_t>(n * row_bytes));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t p = 0; p < k; ++p) {
        const int q = nibbles ? static_cast<int>(random() % 16) - 8 : static_cast<int8_t>(random());
        weights.push_back(q);
        uint8_t& byte = b[static_cast<size_t>(j * row_bytes + (nibbles ? p / 2 : p))];
        byte = static_cast<uint8_t>(nibbles ? byte | (q + 8) << p % 2 * 4 : q);
      }
      scales.push_back(real(random));
      bias.push_back(real(random));
    }
    if (group_size == 0) return;
    for (int64_t g = 0; g < n * groups(); ++g) group_scales.push_back(stored<BF16>(real(random)));
  }

  int64_t groups() const { return (k + group_size - 1) / group_size; }
  double scale(int64_t j, int64_t p) const {
    if (group_size == 0) return scales[static_cast<size_t>(j)];
    const int64_t group = j * groups() + p / group_size;
    return static_cast<float>(value(group_scales[static_cast<size_t>(group)]));
  }

  /// The result, and the sum of the magnitudes of its terms.
  std::pair<double, double> expected(int64_t i, int64_t j) const {
    const RowQuantization& row = rows[static_cast<size_t>(i)];
    double sum = bias[static_cast<size_t>(j)], magnitude = sum;
    for (int64_t p = 0; p < k; ++p) {
      const double w = weights[static_cast<size_t>(j * k + p)] * scale(j, p) * row.scale;
      const int x = a[static_cast<size_t>(i * k + p)];
      sum += (x - row.zero_point) * w;
      magnitude += std::abs((x + 128) * w) + std::abs((row.zero_point + 128) * w);
    }
    return {sum, magnitude};
  }

  Int8Gemm gemm(void* c) {
    Int8Gemm g;
    g.m = m;
    g.n = n;
    g.k = k;
    g.a = a.data();
    g.lda = k;
    g.rows = rows.data();
    g.b.data = b.data();
    g.b.row_bytes = nibbles ? (k + 1) / 2 : k;
    g.b.nibbles = nibbles;
    if (group_size == 0) {
      g.b.scales = scales.data();
    } else {
      g.b.group_scales = group_scales.data();
      g.b.group_size = group_size;
    }
    sums.resize(static_cast<size_t>(n));
    group_sums.resize(static_cast<size_t>(n));
    HeapScratch scratch;
    EXPECT_TRUE(sum_rows(g.b, n, k, sums.data(), group_sums.data(), scratch));
    g.sums = sums.data();
    g.group_sums = group_sums.data();
    g.bias = bias.data();
    g.c = c;
    g.ldc = n;
    return g;
  }

  void check() {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << ", groups " << group_size);
    std::vector<float> c(static_cast<size_t>(m * n));
    run(gemm(c.data()));
    // One scale: the product's and the sum's roundings. Groups: one for each
    // group besides.
    const double steps = 4 + (group_size == 0 ? 0 : static_cast<double>(k / 32));
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const auto [sum, magnitude] = expected(i, j);
        ASSERT_NEAR(c[static_cast<size_t>(i * n + j)], sum, steps * magnitude * 0x1p-24)
            << i << ", " << j;
      }
    }
  }
};

class Int8 : public OnEachSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Int8, testing::Range(0, gemm::count_sets()));

TEST_P(Int8, ComputesBytesOfAnySize) {
  for (const int64_t m : {1, 2, 5, 9, 12, 30}) {
    for (const int64_t n : {1, 3, 67}) {
      for (const int64_t k : {0, 1, 31, 63, 64, 65, 300}) Example(m, n, k).check();
    }
  }
  Example(30, 67, 1101).check();
}

TEST_P(Int8, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const int8::WeightForm& form : int8::kWeightForms) {
    for (const int64_t m : {1, 5, 30, 200}) {
      Example e(m, 150, 2048, form.nibbles, form.group_size);
      const auto results = [&](ThreadPool* pool) {
        const UsePool use(pool);
        std::vector<float> c(static_cast<size_t>(e.m * e.n));
        run(e.gemm(c.data()));
        return c;
      };
      const std::vector<float> alone = results(nullptr);
      for (const size_t threads : {2, 17}) {
        ThreadPool pool(threads);
        EXPECT_EQ(results(&pool), alone) << form.name << ", " << m << " rows, " << threads;
      }
    }
  }
}

// Deeper than what rows are widened at once to, where a machine does that.
TEST_P(Int8, ComputesDeepSums) {
  for (const int64_t k : {1024, 1025, 2300}) Example(25, 19, k).check();
}

TEST_P(Int8, ComputesNibblesOfAnySize) {
  for (const int64_t m : {1, 4, 7, 14}) {
    for (const int64_t n : {2, 35}) {
      for (const int64_t k : {1, 2, 37, 127, 128, 129, 514}) Example(m, n, k, true).check();
    }
  }
}

TEST_P(Int8, ComputesGroupsOfAnySize) {
  for (const int64_t group_size : {32, 64, 96, 128, 160, 256, 512}) {
    for (const int64_t m : {1, 6, 13}) {
      for (const int64_t groups : {1, 3, 8}) {
        Example(m, 5, group_size * groups, true, group_size).check();
      }
    }
  }
  Example(25, 70, 768, true, 32).check();
  for (const int64_t k : {4, 100, 333}) Example(35, 37, k, true, 64).check();  // the last is short
}

// Scales of any sign and of magnitudes that 16-bit weights with one column scale hold, or do not.
TEST_P(Int8, TakesScalesThatDiffer) {
  for (const int most_exponent : {0, 4, 5, 40}) {
    for (const int64_t k : {64, 96, 768, 2500}) {
      for (const int64_t m : {2, 17, 45}) {
        Example e(m, 67, k, true, 32);
        for (size_t i = 0; i < e.group_scales.size(); ++i) {
          const auto exponent = static_cast<int>(i * 7 % static_cast<size_t>(most_exponent + 1));
          const float size = (1 + static_cast<float>(e.random() % 128) / 128) * 0x1p-9f;
          const float scale = i % 11 == 3 ? 0 : std::ldexp(i % 2 == 0 ? size : -size, exponent);
          e.group_scales[i] = stored<BF16>(scale);
        }
        e.check();
      }
    }
  }
}

TEST_P(Int8, TakesColumnsWithoutScaleAndScalesThatAreNoNumbers) {
  for (const float odd : {0.0f, 1e-39f, INFINITY}) {
    Example e(40, 35, 128, true, 32);
    const auto columns = e.group_scales.begin();
    std::fill(columns, columns + 3 * 4, BF16{});
    std::fill(columns + 20 * 4, columns + 21 * 4, stored<BF16>(odd));
    std::vector<float> c(40 * 35);
    run(e.gemm(c.data()));
    for (size_t i = 0; i < c.size(); ++i) {
      const auto [sum, magnitude] =
          e.expected(static_cast<int64_t>(i / 35), static_cast<int64_t>(i % 35));
      if (i % 35 == 20 && odd == INFINITY) {
        EXPECT_FALSE(std::isfinite(c[i])) << i;
      } else {
        EXPECT_NEAR(c[i], sum, 8 * magnitude * 0x1p-24) << i;
      }
    }
  }
}

// More rows than half of the L2 cache holds: several blocks of rows, or, with matrix registers,
// each tile meets all panels, which are packed piece by piece.
TEST_P(Int8, ComputesRowsThatFillTheCache) {
  const int64_t m = machine().l2 / 2 / 2501 + 50;
  Example(m, 70, 2501).check();
  Example(m, 70, 2500).check();  // rows may be read where they lie
  Example(m, 35, 2501, true).check();
  Example(m, 35, 2496, true, 96).check();
}

// Rows so long that the cache holds too few for a block: each tile meets all panels everywhere.
TEST_P(Int8, ComputesRowsOfWhichTheCacheHoldsFew) {
  const int64_t k = gemm::round_up(machine().l2 / 2 / 40, 4);
  Example(60, 35, k).check();
  Example(60, 35, k + 1, true).check();
}

TEST_P(Int8, IsExactAtTheEndsOfTheRange) {
  for (const bool nibbles : {false, true}) {
    for (const int64_t m : {1, 16}) {
      Example e(m, 40, 4096, nibbles, nibbles ? 32 : 0);
      std::fill(e.a.begin(), e.a.end(), int8_t{127});
      std::fill(e.weights.begin(), e.weights.end(), nibbles ? -8 : -128);
      std::fill(e.b.begin(), e.b.end(), nibbles ? uint8_t{0} : uint8_t{0x80});
      e.check();
    }
  }
}

TEST_P(Int8, EqualsTheBestKernelsBitByBit) {
  for (const int64_t m : {2, 31}) {
    for (const bool nibbles : {false, true}) {
      Example e(m, 50, 333, nibbles);
      std::vector<float> found(static_cast<size_t>(m) * 50), expected = found;
      run(e.gemm(found.data()));
      gemm::use_set(0);
      run(e.gemm(expected.data()));
      gemm::use_set(GetParam());
      EXPECT_EQ(found, expected);
    }
  }
}

TEST_P(Int8, TakesUnsignedActivations) {
  for (const int64_t m : {3, 20}) {
    Example e(m, 9, 70);
    std::vector<float> expected(static_cast<size_t>(m) * 9), found = expected;
    run(e.gemm(expected.data()));
    Int8Gemm g = e.gemm(found.data());
    for (int8_t& a : e.a) a = static_cast<int8_t>(a ^ 0x80);
    for (RowQuantization& row : e.rows) row.zero_point += 128;
    g.unsigned_a = true;
    run(g);
    EXPECT_EQ(found, expected);
  }
}

TEST_P(Int8, TakesRowsThatShareTheirQuantization) {
  Example e(31, 9, 70);
  for (size_t i = 1; i < 10; ++i) e.rows[i] = e.rows[0];
  for (size_t i = 11; i < 20; ++i) e.rows[i] = e.rows[10];
  for (size_t i = 21; i < 31; ++i) e.rows[i] = e.rows[20];
  e.rows[30] = e.rows[0];
  std::vector<float> expected(31 * 9), found = expected;
  run(e.gemm(expected.data()));
  Int8Gemm g = e.gemm(found.data());
  const std::vector<RowQuantization> shared = {e.rows[0], e.rows[10], e.rows[20], e.rows[0]};
  g.rows = shared.data();
  g.rows_share = 10;
  run(g);
  EXPECT_EQ(found, expected);
}

TEST_P(Int8, RoundsQuantisedResultsToNearestEvenAndHoldsThem) {
  for (const int64_t m : {3, 30}) {
    for (const int64_t n : {9, 32, 35, 63}) {
      Example e(m, n, 40);
      const auto size = static_cast<size_t>(m * n);
      std::fill(e.rows.begin(), e.rows.end(), e.rows[0]);
      std::vector<int32_t> bias(static_cast<size_t>(n));
      for (int32_t& b : bias) b = static_cast<int32_t>(e.random() % 200) - 100;
      std::vector<float> real(size);
      Int8Gemm g = e.gemm(real.data());
      g.bias = nullptr;
      run(g);
      for (size_t i = 0; i < size; ++i) {
        const size_t j = i % static_cast<size_t>(n);
        real[i] =
            std::round(real[i] / (e.rows[0].scale * e.scales[j])) + static_cast<float>(bias[j]);
      }
      std::vector<uint8_t> c(size);
      g.integer_bias = bias.data();
      g.low = -20;
      g.high = 25;
      g.c = c.data();
      for (const bool is_unsigned : {false, true}) {
        const int zero = is_unsigned ? 125 : -3, shift = is_unsigned ? 0 : 128;
        g.out = is_unsigned ? Int8Gemm::Out::UInt8 : Int8Gemm::Out::Int8;
        g.c_quantization = {0.25f, zero};
        run(g);
        for (size_t i = 0; i < size; ++i) {
          const float factor = e.rows[0].scale * e.scales[i % static_cast<size_t>(n)] / 0.25f;
          const float x = std::nearbyint(std::clamp(real[i] * factor, -80.0f, 100.0f));
          const float held = std::clamp(x + static_cast<float>(zero + shift), 0.0f, 255.0f);
          const int found = is_unsigned ? c[i] : static_cast<int8_t>(c[i]) + 128;
          ASSERT_EQ(found, static_cast<int>(held)) << m << " x " << n << ", " << i;
        }
      }
    }
  }
}

TEST_P(Int8, MakesTheLeastByteOfANaN) {
  Example e(2, 40, 8);
  std::fill(e.rows.begin(), e.rows.end(), RowQuantization{1e38f, 3});
  std::fill(e.scales.begin(), e.scales.end(), 1e38f);  // products are infinite, none times 0 NaN
  std::fill(e.a.begin(), e.a.end(), int8_t{3});
  std::vector<int8_t> c(80);
  Int8Gemm g = e.gemm(c.data());
  g.bias = nullptr;
  g.out = Int8Gemm::Out::Int8;
  g.c_quantization = {1, 5};
  run(g);
  EXPECT_EQ(c, std::vector<int8_t>(80, -128));
}

TEST_P(Int8, StoresHalves) {
  Example e(2, 5, 33);
  std::vector<float> real(10);
  std::vector<uint16_t> c(10);
  Int8Gemm g = e.gemm(real.data());
  run(g);
  g.out = Int8Gemm::Out::BF16;
  g.c = c.data();
  run(g);
  for (size_t i = 0; i < c.size(); ++i) {
    EXPECT_NEAR(value(BF16{c[i]}), real[i], std::abs(real[i]) * 0x1p-8f);
  }
}

TEST_P(Int8, DoesNotDependOnTheNumberOfThreads) {
  Example e(200, 300, 256, true, 64);
  std::vector<float> expected(200 * 300), found = expected;
  {
    const UsePool alone(nullptr);
    run(e.gemm(expected.data()));
  }
  ThreadPool pool(3);
  const UsePool three(&pool);
  run(e.gemm(found.data()));
  EXPECT_EQ(found, expected);
}

TEST_P(Int8, IsRefusedMemoryBeforeAnythingIsWritten) {
  for (const int64_t m : {3, 40}) {
    Example e(m, 50, 333);
    std::vector<float> c(static_cast<size_t>(m) * 50, 7);
    const std::vector<float> before = c;
    Int8Gemm g = e.gemm(c.data());
    expect_refusal(g);
    HeapScratch scratch;
    g.k = int64_t{1} << 61;
    EXPECT_FALSE(g.run(scratch));
    EXPECT_FALSE(sum_rows(g.b, g.n, g.k, e.sums.data(), nullptr, scratch));
    EXPECT_EQ(c, before);
  }
}

TEST_P(Int8, TakesEmptySizes) {
  for (const int64_t m : {0, 1, 20}) {
    for (const int64_t n : {0, 9}) {
      for (const int64_t group_size : {0, 32}) {
        Example e(m, n, 0, group_size > 0, group_size);
        std::vector<float> c(static_cast<size_t>(m * n), 7);
        run(e.gemm(c.data()));
        for (int64_t i = 0; i < m * n; ++i) {
          EXPECT_EQ(c[static_cast<size_t>(i)], e.bias[static_cast<size_t>(i % n)]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
