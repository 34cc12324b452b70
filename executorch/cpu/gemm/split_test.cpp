#include <executorch/cpu/gemm/kernels_testing.h>
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

/// All bits of their significands are in use.
template <class T>
std::vector<T> numbers(int64_t n, uint32_t seed) {
  std::vector<T> x(static_cast<size_t>(n));
  for (T& number : x) {
    seed = seed * 1664525 + 1013904223;
    number = stored<T>(static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31f);
  }
  return x;
}

template <class T>
T nan() {
  if constexpr (std::is_same_v<T, float>) {
    return kNaN;
  } else {
    T x = stored<T>(kInfinity);
    x.bits |= 1 << 6;
    return x;
  }
}

enum class From { Rows, Columns, Source };

template <class T>
struct Product {
  int64_t m, n, k;
  From b_from = From::Rows;
  bool a_from_source = false;
  bool terms = false;
  std::vector<T> a = numbers<T>(m * k, 1), b = numbers<T>(k * n, 2);  // [m, k], [k, n]
  std::vector<T> bias = numbers<T>(n, 3), residual = numbers<T>(m * n, 4);

  static double at(const std::vector<T>& x, int64_t i, int64_t j, int64_t ld) {
    return value(x[static_cast<size_t>(i * ld + j)]);
  }
  static void produce_rows(const void* self, int64_t, int64_t i0, int64_t ni, int64_t p0,
                           int64_t np, float* to, int64_t ld) {
    const auto& p = *static_cast<const Product*>(self);
    for (int64_t i = 0; i < ni; ++i) {
      for (int64_t q = 0; q < np; ++q) {
        to[i * ld + q] = static_cast<float>(at(p.a, i0 + i, p0 + q, p.k));
      }
    }
  }
  static void produce_panel(const void* self, int64_t, int64_t j0, int64_t nj, int64_t p0,
                            int64_t np, float* to, int64_t ld) {
    const auto& p = *static_cast<const Product*>(self);
    for (int64_t i = 0; i < np; ++i) {
      for (int64_t j = 0; j < ld; ++j) {
        to[i * ld + j] = j < nj ? static_cast<float>(at(p.b, p0 + i, j0 + j, p.n)) : 0.0f;
      }
    }
  }

  std::vector<T> run(size_t limit = SIZE_MAX, bool expected = true) const {
    std::vector<T> c(static_cast<size_t>(m * n), stored<T>(-7.0f)), transposed;
    HeapScratch scratch(limit);
    Gemm<T> g;
    g.m = m, g.n = n, g.k = k;
    g.a = {a.data(), k, 1};
    g.b = {b.data(), n, 1};
    g.c = {c.data(), n, 1};
    if (a_from_source) g.a_source = {produce_rows, this};
    if (b_from == From::Source) g.b_source = {produce_panel, this};
    if (b_from == From::Columns) {
      transposed.resize(b.size());
      for (size_t i = 0; i < b.size(); ++i) {
        const auto p = i / static_cast<size_t>(n), j = i % static_cast<size_t>(n);
        transposed[j * static_cast<size_t>(k) + p] = b[i];
      }
      g.b = {transposed.data(), 1, k};
    }
    if (terms) {
      g.addend = {bias.data(), 0, 1};
      g.residual = {residual.data(), n, 1};
      g.act = {Activation::Kind::Clamp, -2.0f, 2.5f};
      g.act_last = true;
    }
    EXPECT_EQ(gemm::SplitBlocks<T>::pays(g),
              gemm::kernels().split[gemm::kParts<T>].multiply != nullptr);
    EXPECT_EQ(g.run(scratch), expected);
    return c;
  }

  /// The largest error of an element of some rows, over the sum of its products' sizes.
  double error(const std::vector<T>& c) const {
    double most = 0;
    for (int64_t i = m - 1; i >= 0; i -= 5) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0, sizes = 0;
        for (int64_t p = 0; p < k; ++p) {
          const double x = at(a, i, p, k) * at(b, p, j, n);
          sum += x, sizes += std::abs(x);
        }
        if (terms) {
          sum += at(bias, 0, j, n) + at(residual, i, j, n);
          sizes += std::abs(at(bias, 0, j, n)) + std::abs(at(residual, i, j, n));
          sum = std::min(std::max(sum, -2.0), 2.5);
        }
        const double rounding = std::is_same_v<T, float> ? 0 : std::abs(sum) * kUnit;
        most = std::max(most, (std::abs(at(c, i, j, n) - sum) - rounding) / sizes);
      }
    }
    return most;
  }
  /// Half a unit in the last place, of the stored type.
  static constexpr double kUnit = std::is_same_v<T, BF16> ? 0x1p-8 : 0x1p-11;
};

template <class T>
void expect_equal(const std::vector<T>& found, const std::vector<T>& expected, const char* what) {
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(T)), 0) << what;
}

/// Calls f(Product<T>{...}) for every type.
template <class F>
void for_each_type(int64_t m, int64_t n, int64_t k, const F& f) {
#define ET_ROW(T, name)     \
  {                         \
    SCOPED_TRACE(#name);    \
    f(Product<T>{m, n, k}); \
  }
  ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW
}

class Split : public OnEachSet {
 protected:
  void TearDown() override {
    OnEachSet::TearDown();
    default_pool().resize(1);
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, Split, testing::Range(0, gemm::count_sets()));

// Of k roundings, few have the same sign.
constexpr double kRoundings = 8 * 0x1p-24;

TEST_P(Split, IsAsAccurateAsMultiplyAdds) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{128, 192, 768},
                                {50, 147, 67},
                                {200, 150, 1600},
                                {65, 200, 96},
                                {49, 200, 2100},
                                {97, 160, 64}}) {
    for_each_type(m, n, k, [](auto product) {
      for (const bool terms : {false, true}) {
        product.terms = terms;
        EXPECT_LE(product.error(product.run()), kRoundings)
            << product.m << 'x' << product.k << 'x' << product.n;
      }
    });
  }
}

// Numbers of rows of which no set computes the last as dot products, which add up in another order.
TEST_P(Split, IsTheSameWhereverItsOperandsLieAndForAnyNumberOfThreads) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{78, 147, 1101}, {300, 165, 800}}) {
    for_each_type(m, n, k, [](auto product) {
      product.terms = true;
      default_pool().resize(1);
      const auto expected = product.run();
      for (const size_t threads : {1, 2, 3, 5}) {
        default_pool().resize(threads);
        for (const From from : {From::Rows, From::Columns, From::Source}) {
          for (const bool a_from_source : {false, true}) {
            product.b_from = from;
            product.a_from_source = a_from_source;
            SCOPED_TRACE(threads);
            expect_equal(product.run(), expected, a_from_source ? "A from a source" : "A in rows");
          }
        }
      }
    });
  }
}

TEST_P(Split, GivesInfinitiesAndNaNsWhereMultiplyAddsDo) {
  for_each_type(100, 160, 900, [](auto product) {
    using T = typename decltype(product.a)::value_type;
    const auto finite = product.run();
    product.a[3 * 900 + 5] = stored<T>(kInfinity);
    product.a[70 * 900 + 899] = nan<T>();
    product.b[12 * 160 + 9] = stored<T>(-kInfinity);
    for (const From from : {From::Rows, From::Columns, From::Source}) {
      product.b_from = from;
      product.a_from_source = from == From::Source;
      const auto found = product.run();
      for (int64_t i = 0; i < 100; ++i) {
        for (int64_t j = 0; j < 160; ++j) {
          double expected = product.at(finite, i, j, 160);
          if (i == 3) expected = product.at(product.b, 5, j, 160) * kInfinity;
          if (j == 9) {
            expected = (i == 3 ? expected : 0) - product.at(product.a, i, 12, 900) * kInfinity;
          }
          if (i == 70) expected = kNaN;
          const double x = product.at(found, i, j, 160);
          ASSERT_EQ(std::isnan(x), std::isnan(expected)) << i << ' ' << j;
          if (std::isinf(expected)) {
            ASSERT_EQ(x, expected) << i << ' ' << j;
          } else if (std::isfinite(expected)) {
            // Both were rounded.
            ASSERT_NEAR(x, expected, 1e-3 + std::abs(expected) * 2 * product.kUnit)
                << i << ' ' << j;
          }
        }
      }
    }
  });
}

TEST_P(Split, OfTheLargestNumbersIsFinite) {
  Product<float> product{64, 160, 64};
  std::fill(product.a.begin(), product.a.end(), 0.0f);
  for (int64_t i = 0; i < 64; ++i) product.a[static_cast<size_t>(i * 64 + i)] = kMost;
  for (float& x : product.b) x = x < 0 ? -1.0f : 1.0f;
  const std::vector<float> found = product.run();
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], kMost * product.b[i]) << i;
}

TEST_P(Split, OfSmallNumbersIsAccurate) {
  Product<float> product{64, 160, 128};
  for (float& x : product.a) x *= 0x1p-100f;
  for (float& x : product.b) x *= 0x1p+60f;
  EXPECT_LE(product.error(product.run()), kRoundings);
}

TEST_P(Split, WritesNothingWhereMemoryIsRefused) {
  for_each_type(128, 192, 768, [](auto product) {
    for (const From from : {From::Rows, From::Columns}) {
      product.b_from = from;
      for (const size_t limit : {size_t{0}, size_t{4096}, size_t{1} << 16}) {
        for (const auto x : product.run(limit, false)) ASSERT_EQ(value(x), -7.0);
      }
    }
  });
}

}  // namespace
}  // namespace executorch::cpu
