#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace executorch::cpu {
namespace {

BF16 bfloat16_of(float x) {
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
}
float to_float(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

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
    for (int64_t g = 0; g < n * (k / group_size); ++g) {
      group_scales.push_back(bfloat16_of(real(random)));
    }
  }

  double scale(int64_t j, int64_t p) const {
    if (group_size == 0) return scales[static_cast<size_t>(j)];
    const int64_t group = j * (k / group_size) + p / group_size;
    return to_float(group_scales[static_cast<size_t>(group)]);
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
    sum_rows(g.b, n, k, sums.data(), group_sums.data());
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
    gemm(c.data()).run();
    // One scale: the product's and the sum's roundings. Groups: one for each group besides.
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

TEST(Int8Gemm, ComputesBytesOfAnySize) {
  for (const int64_t m : {1, 2, 3, 5, 70}) {
    for (const int64_t n : {1, 3, 67}) {
      for (const int64_t k : {0, 1, 63, 64, 65, 300}) Example(m, n, k).check();
    }
  }
}

TEST(Int8Gemm, ComputesNibblesOfAnySize) {
  for (const int64_t m : {1, 4, 7}) {
    for (const int64_t n : {2, 5}) {
      for (const int64_t k : {1, 2, 37, 127, 128, 129, 514}) Example(m, n, k, true).check();
    }
  }
}

TEST(Int8Gemm, ComputesGroupsOfAnySize) {
  for (const int64_t group_size : {32, 64, 96, 128, 160, 256}) {
    for (const int64_t m : {1, 6}) {
      Example(m, 5, group_size, true, group_size).check();
      Example(m, 3, group_size * 3, true, group_size).check();
    }
  }
}

TEST(Int8Gemm, RoundsQuantisedResultsToNearestEvenAndHoldsThem) {
  Example e(3, 9, 40);
  std::vector<float> real(27);
  std::vector<int8_t> c(27);
  Int8Gemm g = e.gemm(real.data());
  g.run();
  g.low = -20;
  g.out = Int8Gemm::Out::Int8;
  g.c = c.data();
  g.c_quantization = {0.25f, -3};
  g.run();
  for (size_t i = 0; i < c.size(); ++i) {
    const float x = std::nearbyint(std::max(real[i], -20.0f) * 4) - 3;
    EXPECT_EQ(c[i], std::max(-128.0f, std::min(127.0f, x))) << real[i];
  }
}

TEST(Int8Gemm, StoresHalves) {
  Example e(2, 5, 33);
  std::vector<float> real(10);
  std::vector<uint16_t> c(10);
  Int8Gemm g = e.gemm(real.data());
  g.run();
  g.out = Int8Gemm::Out::BF16;
  g.c = c.data();
  g.run();
  for (size_t i = 0; i < c.size(); ++i) {
    EXPECT_NEAR(to_float({c[i]}), real[i], std::abs(real[i]) * 0x1p-8f);
  }
}

TEST(Int8Kernels, AgreeWithThePortableOnes) {
  std::mt19937 random(2);
  std::vector<uint8_t> a(4 * 256), b(4 * 256);
  for (auto* bytes : {&a, &b}) {
    for (uint8_t& byte : *bytes) byte = static_cast<uint8_t>(random());
  }
  const BF16 scales[16] = {{0x3F80}, {0x4000}, {0x4040}, {0x4080}, {0x3F80}, {0x3F00}};
  const int32_t group_of[32] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  float found[16] = {}, expected[16] = {};
  int8::Tile tile{a.data(), 256, b.data(), 128, 256, found, 4, scales, 32, 0, group_of};
  tile.groups = 4;
  tile.k = 128;
  const auto compare = [&](auto family) {
    tile.sums = found;
    (int8::kernels().*family)[3][3](tile);
    tile.sums = expected;
    (int8::portable_kernels().*family)[3][3](tile);
    EXPECT_EQ(std::memcmp(found, expected, sizeof(found)), 0);
  };
  compare(&int8::Kernels::bytes);
  compare(&int8::Kernels::nibbles);
  compare(&int8::Kernels::groups);  // small integers times powers of two: exact in any order
}

}  // namespace
}  // namespace executorch::cpu
