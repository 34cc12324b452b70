#include <executorch/cpu/gemm/kernels_testing.h>
#include <executorch/cpu/gemm/panels.h>
#include <executorch/cpu/gemm/split_blocks.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

// Products that matrix registers of bfloat16 compute where a machine has some: as accurate as
// multiply-adds, and the same for numbers that have no parts. The other sets take the same tests.
namespace executorch::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

/// All 24 bits of their significands are in use.
std::vector<float> numbers(int64_t n, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f;
  }
  return x;
}

enum class From { Rows, Panels, Columns, Source };

struct Product {
  int64_t m, n, k;
  From b_from = From::Rows;
  bool a_from_source = false;
  bool terms = false;
  std::vector<float> a = numbers(m * k, 1), b = numbers(k * n, 2);  // [m, k], [k, n]
  std::vector<float> bias = numbers(n, 3), residual = numbers(m * n, 4);

  static void produce_rows(const void* self, int64_t, int64_t i0, int64_t ni, int64_t p0,
                           int64_t np, float* to, int64_t ld) {
    const auto& p = *static_cast<const Product*>(self);
    for (int64_t i = 0; i < ni; ++i) {
      std::copy_n(p.a.data() + (i0 + i) * p.k + p0, np, to + i * ld);
    }
  }
  static void produce_panel(const void* self, int64_t, int64_t j0, int64_t nj, int64_t p0,
                            int64_t np, float* to, int64_t ld) {
    const auto& p = *static_cast<const Product*>(self);
    for (int64_t i = 0; i < np; ++i) {
      std::copy_n(p.b.data() + (p0 + i) * p.n + j0, nj, to + i * ld);
      std::fill(to + i * ld + nj, to + (i + 1) * ld, 0.0f);
    }
  }

  std::vector<float> run(size_t limit = SIZE_MAX, bool expected = true) const {
    std::vector<float> c(static_cast<size_t>(m * n), -7.0f), transposed;
    HeapScratch memory, scratch(limit);
    Gemm<float> g;
    g.m = m, g.n = n, g.k = k;
    g.a = {a.data(), k, 1};
    g.b = {b.data(), n, 1};
    g.c = {c.data(), n, 1};
    if (a_from_source) g.a_source = {produce_rows, this};
    if (b_from == From::Source) g.b_source = {produce_panel, this};
    if (b_from == From::Panels) {
      Scratch& own = memory;
      g.b_panels = pack_panels(g.b, k, n, own.array<float>(count_panel_elements(k, n)));
    }
    if (b_from == From::Columns) {
      transposed.resize(b.size());
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j) transposed[static_cast<size_t>(j * k + p)] = at(b, p, j, n);
      }
      g.b = {transposed.data(), 1, k};
    }
    if (terms) {
      g.addend = {bias.data(), 0, 1};
      g.residual = {residual.data(), n, 1};
      g.act = {Activation::Kind::Clamp, -2.0f, 2.5f};
      g.act_last = true;
    }
    EXPECT_EQ(gemm::SplitBlocks::pays(g), gemm::kernels().split.multiply != nullptr);
    EXPECT_EQ(g.run(scratch), expected);
    return c;
  }

  static float at(const std::vector<float>& x, int64_t i, int64_t j, int64_t ld) {
    return x[static_cast<size_t>(i * ld + j)];
  }

  /// The largest error of an element, over the sum of its products' sizes.
  double error(const std::vector<float>& c) const {
    double most = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, sizes = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double x = double{at(a, i, p, k)} * at(b, p, j, n);
          sum += x, sizes += std::abs(x);
        }
        if (terms) {
          sum += double{at(bias, 0, j, n)} + at(residual, i, j, n);
          sizes += std::abs(at(bias, 0, j, n)) + std::abs(at(residual, i, j, n));
          sum = std::min(std::max(sum, -2.0), 2.5);
        }
        most = std::max(most, std::abs(at(c, i, j, n) - sum) / sizes);
      }
    }
    return most;
  }
};

class Split : public OnEachSet {
 protected:
  void TearDown() override {
    OnEachSet::TearDown();
    default_pool().resize(1);
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, Split, testing::Range(0, gemm::count_sets()));

constexpr double kRounding = 0x1p-24;

TEST_P(Split, IsAsAccurateAsMultiplyAdds) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{128, 192, 768},
                                {50, 147, 67},
                                {200, 150, 1600},
                                {65, 200, 96},
                                {49, 200, 3000},
                                {97, 160, 64}}) {
    for (const bool terms : {false, true}) {
      Product product{m, n, k};
      product.terms = terms;
      // The error of k roundings, of which few have the same sign.
      EXPECT_LE(product.error(product.run()), 8 * kRounding) << m << 'x' << k << 'x' << n;
    }
  }
}

TEST_P(Split, IsTheSameWhereverItsOperandsLieAndForAnyNumberOfThreads) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{70, 147, 1100}, {300, 165, 800}}) {
    Product product{m, n, k};
    product.terms = true;
    const std::vector<float> expected = product.run();
    for (const size_t threads : {1, 2, 3, 5}) {
      default_pool().resize(threads);
      for (const From from : {From::Rows, From::Panels, From::Columns, From::Source}) {
        for (const bool a_from_source : {false, true}) {
          product.b_from = from;
          product.a_from_source = a_from_source;
          const std::vector<float> found = product.run();
          EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0)
              << m << 'x' << k << 'x' << n << ", " << threads << " threads, B "
              << static_cast<int>(from) << ", A from a source " << a_from_source;
        }
      }
    }
  }
}

TEST_P(Split, GivesInfinitiesAndNaNsWhereMultiplyAddsDo) {
  for (const bool sources : {false, true}) {
    Product product{100, 160, 900};
    product.a_from_source = sources;
    product.b_from = sources ? From::Source : From::Rows;
    const std::vector<float> finite = product.run();
    product.a[3 * 900 + 5] = kInfinity;
    product.a[70 * 900 + 899] = kNaN;
    product.b[12 * 160 + 9] = -kInfinity;
    product.a[9 * 900 + 12] = 0;
    const std::vector<float> found = product.run();
    for (int64_t i = 0; i < 100; ++i) {
      for (int64_t j = 0; j < 160; ++j) {
        float expected = Product::at(finite, i, j, 160);
        if (i == 3) expected = product.b[static_cast<size_t>(5 * 160 + j)] * kInfinity;
        if (j == 9)
          expected = (i == 3 ? expected : 0) + Product::at(product.a, i, 12, 900) * -kInfinity;
        if (i == 70) expected = kNaN;
        const float x = Product::at(found, i, j, 160);
        ASSERT_EQ(std::isnan(x), std::isnan(expected)) << i << ' ' << j;
        if (std::isinf(expected)) {
          ASSERT_EQ(x, expected) << i << ' ' << j;
        } else if (std::isfinite(expected) && i != 9) {
          ASSERT_NEAR(x, expected, 1e-3) << i << ' ' << j;
        }
      }
    }
  }
}

TEST_P(Split, OfTheLargestNumbersIsFinite) {
  Product product{64, 160, 64};
  std::fill(product.a.begin(), product.a.end(), 0.0f);
  for (int64_t i = 0; i < 64; ++i) product.a[static_cast<size_t>(i * 64 + i)] = kMost;
  for (float& x : product.b) x = x < 0 ? -1.0f : 1.0f;
  const std::vector<float> found = product.run();
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], kMost * product.b[i]) << i;
}

TEST_P(Split, OfSmallNumbersIsAccurate) {
  Product product{64, 160, 128};
  for (float& x : product.a) x *= 0x1p-100f;
  for (float& x : product.b) x *= 0x1p+60f;
  EXPECT_LE(product.error(product.run()), 8 * kRounding);
}

TEST_P(Split, WritesNothingWhereMemoryIsRefused) {
  const Product product{128, 192, 768};
  for (const size_t limit : {size_t{0}, size_t{4096}, size_t{1} << 16}) {
    for (const float x : product.run(limit, false)) ASSERT_EQ(x, -7.0f);
  }
}

}  // namespace
}  // namespace executorch::cpu
