#include <executorch/cpu/gemm/quantized_weights.h>

#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

// Products by 8-bit weights against sums in double of the dequantized weights.
namespace executorch::cpu {
namespace {

constexpr int64_t kGap = 5;  // elements between rows

struct Shape {
  int64_t m, n, k, group;
  bool zero_points = false;
  int64_t batch = 1;
};

template <class T>
struct Example {
  const Shape z;
  std::vector<T> a;
  std::vector<int8_t> w;
  std::vector<float> scales, zero_points;
  std::vector<T> bias, residual;

  explicit Example(const Shape& shape) : z(shape) {
    auto fill = [seed = uint32_t{7}](auto& to, int64_t n, const auto& make) mutable {
      to.resize(static_cast<size_t>(n));
      for (auto& x : to) x = make(static_cast<int32_t>((seed = seed * 1664525 + 1013904223) >> 16));
    };
    const auto number = [](int32_t x) { return stored<T>(static_cast<float>(x % 64 - 32) / 16); };
    const int64_t groups = z.n * z.k / z.group;
    fill(a, z.batch * z.m * (z.k + kGap), number);
    fill(w, z.n * (z.k + kGap), [](int32_t x) { return static_cast<int8_t>(x % 256 - 128); });
    fill(scales, groups, [](int32_t x) { return static_cast<float>(x % 50 + 1) / 1024; });
    fill(zero_points, groups, [](int32_t x) { return static_cast<float>(x % 20 - 10); });
    fill(bias, z.n, number);
    fill(residual, z.batch * z.m * z.n, number);
  }

  double weight(int64_t j, int64_t p) const {
    const auto g = static_cast<size_t>(j * (z.k / z.group) + p / z.group);
    const double zero = z.zero_points ? zero_points[g] : 0;
    return (w[static_cast<size_t>(j * (z.k + kGap) + p)] - zero) * scales[g];
  }

  // `by_columns`: columns of A are contiguous.
  std::vector<T> result(ThreadPool* pool, bool by_columns = false) const {
    const int64_t lda = z.k + kGap;
    std::vector<T> transposed(a.size());
    for (int64_t s = 0; s < z.batch * z.m; ++s) {
      for (int64_t p = 0; p < z.k; ++p) {
        const int64_t i = s % z.m, entry = s / z.m * z.m * lda;
        transposed[static_cast<size_t>(entry + p * z.m + i)] = a[static_cast<size_t>(s * lda + p)];
      }
    }
    std::vector<T> c(static_cast<size_t>(z.batch * z.m * z.n));
    Gemm<T> g;
    g.m = z.m, g.n = z.n, g.k = z.k, g.batch = z.batch;
    g.a =
        by_columns ? Matrix<const T>{transposed.data(), 1, z.m} : Matrix<const T>{a.data(), lda, 1};
    g.c = {c.data(), z.n, 1};
    g.a_batch = z.m * lda, g.c_batch = z.m * z.n;
    g.addend = {bias.data(), 0, 1};
    g.residual = {residual.data(), z.n, 1}, g.residual_batch = z.m * z.n;
    g.act = relu();
    const QuantizedWeights b = {w.data(), lda, scales.data(),
                                z.zero_points ? zero_points.data() : nullptr, z.group};
    HeapScratch scratch;
    const UsePool use(pool);
    EXPECT_TRUE(multiply(g, b, scratch));
    return c;
  }

  void compare(const std::vector<T>& c) const {
    for (int64_t i = 0; i < z.batch * z.m; ++i) {
      for (int64_t j = 0; j < z.n; ++j) {
        double sum = value(bias[static_cast<size_t>(j)]), size = std::fabs(sum);
        for (int64_t p = 0; p < z.k; ++p) {
          const double x = value(a[static_cast<size_t>(i * (z.k + kGap) + p)]);
          sum += x * weight(j, p);
          size += std::fabs(x * weight(j, p));
        }
        const auto at = static_cast<size_t>(i * z.n + j);
        const double expected = std::max(sum, 0.0) + value(residual[at]);
        // Each weight is rounded as well.
        const double bound =
            1.2 * (static_cast<double>(z.k) + 17) * 6e-8 * (size + std::fabs(expected)) +
            epsilon<T>() * std::fabs(expected) + 1e-30;
        ASSERT_NEAR(value(c[at]), expected, bound) << i << " " << j;
      }
    }
  }
};

template <class T>
class QuantizedWeightsOf : public testing::Test {};
using Types = TypesOf<void ET_STORED_FLOATS(ET_TYPE)>;
TYPED_TEST_SUITE(QuantizedWeightsOf, Types);

TYPED_TEST(QuantizedWeightsOf, AgreeWithSumsOfDequantizedWeights) {
  for_each_target([] {
    for (const bool zero_points : {false, true}) {
      for (const int64_t m : {1, 2, 3, 5, 7, 16, 30, 31, 41}) {
        for (const auto& [k, group] : {std::pair{64, 32}, {70, 70}, {70, 7}, {33, 1}, {256, 128}}) {
          for (const int64_t n : {1, 3, 50, 205}) {
            const Example<TypeParam> example({m, n, k, group, zero_points});
            SCOPED_TRACE(testing::Message() << m << " " << n << " " << k << " " << group);
            example.compare(example.result(nullptr));
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TYPED_TEST(QuantizedWeightsOf, TakeBatchesAndColumns) {
  for (const int64_t m : {1, 3, 30}) {
    const Example<TypeParam> example({m, 60, 96, 32, true, 3});
    example.compare(example.result(nullptr));
    example.compare(example.result(nullptr, true));
  }
}

TYPED_TEST(QuantizedWeightsOf, AreTheSameForAnyNumberOfThreads) {
  for (const int64_t m : {1, 9, 70, 300}) {
    const Example<TypeParam> example({m, 310, 1600, 32});
    const std::vector<TypeParam> first = example.result(nullptr);
    example.compare(first);
    for (const size_t threads : {2, 3, 17}) {
      ThreadPool pool(threads);
      const std::vector<TypeParam> found = example.result(&pool);
      ASSERT_EQ(std::memcmp(first.data(), found.data(), found.size() * sizeof(TypeParam)), 0)
          << m << " rows, " << threads << " threads";
    }
  }
}

TEST(QuantizedWeights, RefuseSizesThatOverflowAndMemoryThatIsRefused) {
  const int8_t weight = 1;
  const float scale = 1, x = 1;
  float c = 0;
  const QuantizedWeights b = {&weight, 1, &scale, nullptr, 1};
  Gemm<float> g;
  g.a = {&x, 0, 0}, g.c = {&c, 0, 0};
  for (const int64_t m : {int64_t{4}, kTwo31}) {
    g.m = m, g.n = std::numeric_limits<int64_t>::max() / 2, g.k = kTwo31;
    HeapScratch scratch;
    EXPECT_FALSE(multiply(g, b, scratch));
  }
  g.n = 0;
  HeapScratch scratch;
  EXPECT_TRUE(multiply(g, b, scratch));
  g.m = 4, g.n = 4, g.k = 8;
  Scratch refused([](void*, size_t) -> void* { return nullptr; }, nullptr);
  EXPECT_FALSE(multiply(g, b, refused));
}

}  // namespace
}  // namespace executorch::cpu
