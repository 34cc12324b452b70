#include <executorch/cpu/gemm/kernels_testing.h>
#include <executorch/cpu/gemm/panels.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

// Products of a packed B give what those of the same B give where it lies, to the bit.
namespace executorch::cpu {
namespace {

std::vector<float> numbers(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 2654435761u % 2039) / 512 - 2;
  return x;
}

/// Panels and what they are of. Behind them lie numbers that a product must not read.
struct Packed {
  int64_t k, n, ld;
  std::vector<float> rows;
  HeapScratch memory;
  Panels<float> panels;

  Packed(int64_t k_, int64_t n_, int64_t ld_) : k(k_), n(n_), ld(ld_), rows(numbers(k_ * ld_)) {
    Scratch& scratch = memory;
    float* const to = scratch.array<float>(count_panel_elements(k, n));
    panels = pack_panels({rows.data(), ld, 1}, k, n, to);
  }
};

struct Product {
  int64_t m;
  const Packed* b;
  int64_t batch = 1;
  bool terms = false;

  std::vector<float> run(bool packed) const {
    const std::vector<float> a = numbers(batch * m * b->k), bias = numbers(b->n),
                             residual = numbers(batch * m * b->n);
    std::vector<float> c(residual.size());
    Gemm<float> g;
    g.m = m, g.n = b->n, g.k = b->k, g.batch = batch;
    g.a = {a.data(), b->k, 1};
    g.b = {b->rows.data(), b->ld, 1};
    g.c = {c.data(), b->n, 1};
    g.a_batch = m * b->k, g.c_batch = g.residual_batch = m * b->n;
    if (terms) {
      g.addend = {bias.data(), 0, 1};
      g.residual = {residual.data(), b->n, 1};
      g.act.kind = Activation::Kind::Gelu;
    }
    std::vector<float> poison;
    if (packed) {
      // Who reads rows instead gets other results.
      poison.assign(b->rows.size(), 1e30f);
      g.b.data = poison.data();
      g.b_panels = b->panels;
    }
    HeapScratch scratch;
    EXPECT_TRUE(g.run(scratch));
    return c;
  }
};

class PackedB : public OnEachSet {
 protected:
  void TearDown() override {
    OnEachSet::TearDown();
    default_pool().resize(1);
  }
  static void expect_equal(const Product& product) {
    const std::vector<float> expected = product.run(false), found = product.run(true);
    const auto bytes = expected.size() * sizeof(float);
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), bytes), 0)
        << product.batch << " x " << product.m << "x" << product.b->k << "x" << product.b->n;
  }
};

TEST_P(PackedB, GivesTheSameResultsForAnyNumberOfRows) {
  for (const auto& [k, n] : {std::pair(768, 768), {300, 771}, {1700, 130}, {64, 4096}, {5, 33}}) {
    const Packed b(k, n, n);
    for (int64_t m = 1; m <= 20; ++m) expect_equal({m, &b});
    for (const int64_t m : {33, 47, 48, 49, 100, 129, 200}) expect_equal({m, &b});
  }
}

TEST_P(PackedB, GivesTheSameResultsForAnySizes) {
  for (const int64_t k : {1, 2, 3, 7, 8, 15, 16, 17, 255, 257, 769}) {
    for (int64_t n = 1; n <= 70; n += n < 35 ? 1 : 5) {
      const Packed b(k, n, n + 3);
      for (const int64_t m : {1, 2, 5, 8, 9, 30, 50}) {
        // Products of few columns are computed as those of few rows, from B's rows.
        if (n >= m || n > 8) expect_equal({m, &b});
      }
    }
  }
}

TEST_P(PackedB, GivesTheSameResultsWithTermsThreadsAndBatches) {
  const Packed b(800, 330, 336);
  for (const size_t threads : {1, 2, 5}) {
    default_pool().resize(threads);
    for (const int64_t m : {1, 2, 4, 7, 8, 12, 40, 130}) {
      expect_equal({m, &b, 1, true});
      expect_equal({m, &b, 3, true});
    }
  }
}

TEST_P(PackedB, HasAsManyElementsAsItTakes) {
  const auto& row = gemm::row<float>();
  for (int64_t n = 1; n <= 3 * row.columns; ++n) {
    const int64_t elements = count_panel_elements(5, n).value();
    EXPECT_GE(elements, 5 * n);
    EXPECT_LT(elements, 5 * (n + row.width_step));
    const Packed b(5, n, n);  // AddressSanitizer finds what is packed behind the end
    EXPECT_EQ(b.panels.width, row.columns);
  }
  EXPECT_EQ(count_panel_elements(int64_t{1} << 40, int64_t{1} << 40).value_or(-1), -1);
  EXPECT_EQ(count_panel_elements(INT64_MAX, 1).value_or(-1), -1);
  EXPECT_EQ(count_panel_elements(1, INT64_MAX).value_or(-1), -1);
}

TEST_P(PackedB, IsIgnoredWherePanelsHaveAnotherWidth) {
  const Packed b(40, 64, 64);
  Packed other(40, 64, 64);
  other.panels.width += 8;
  std::fill(other.rows.begin(), other.rows.end(), 1.0f);
  Product product{16, &other};
  const std::vector<float> found = product.run(true);  // rows of 1e30
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](float x) { return x > 1e29f; }));
}

INSTANTIATE_TEST_SUITE_P(Sets, PackedB, testing::Range(0, gemm::count_sets()));

}  // namespace
}  // namespace executorch::cpu
