#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/testing.h>
#include <executorch/cpu/threadpool.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// Products against sums in double. The bound of an element is that of any order of summation,
// (k + 4) eps sum |a b|, and one rounding to the stored type.
namespace executorch::cpu {
namespace {

template <class T>
T from_int(int64_t x) {  // small integers and quarters are exact in every type
  if constexpr (std::is_class_v<T>) {
    return stored<T>(static_cast<float>(x) / 4);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else {
    return static_cast<T>(x) / 4 + static_cast<T>(x % 3) * static_cast<T>(0.1);
  }
}

struct Random {
  uint64_t state = 88172645463325252ull;
  int64_t operator()(int64_t low, int64_t high) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return low + static_cast<int64_t>(state % static_cast<uint64_t>(high - low + 1));
  }
};

// In Windows row i begins at element i of a vector: all strides are 1.
enum class Layout { Rows, Columns, Gaps, Windows };

// A matrix in memory of its own.
template <class T>
struct Stored {
  std::vector<T> data;
  Matrix<const T> view;
  int64_t batch;

  Stored(int64_t s, int64_t rows, int64_t cols, Layout layout, Random& random) {
    const int64_t row_stride = layout == Layout::Rows   ? cols + 3
                               : layout == Layout::Gaps ? 2 * cols + 1
                                                        : 1;
    const int64_t col_stride = layout == Layout::Columns ? rows + 1
                               : layout == Layout::Gaps  ? 2
                                                         : 1;
    batch = rows * row_stride + cols * col_stride;
    data.resize(static_cast<size_t>(std::max<int64_t>(s * batch, 1)));
    for (T& x : data) x = from_int<T>(random(std::is_unsigned_v<T> ? 0 : -9, 9));
    view = {data.data(), row_stride, col_stride};
  }
  double at(int64_t s, int64_t i, int64_t j) const {
    return value(data[static_cast<size_t>(s * batch + i * view.row_stride + j * view.col_stride)]);
  }
};

double apply(const Activation& act, double x) {
  switch (act.kind) {
    case Activation::Kind::Clamp:
      return std::min(std::max(x, static_cast<double>(act.low)), static_cast<double>(act.high));
    case Activation::Kind::Gelu:
      return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
    case Activation::Kind::Silu:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

struct Shape {
  int64_t m, n, k, batch;
};
struct Layouts {
  Layout a, b, c;
};
struct Epilogue {
  double alpha = 1, beta = 1;
  bool addend = false, row_bias = false, residual = false, act_last = false;
  Activation act = {};
};

// Products that threads share, which must not change a bit.
constexpr int64_t kLarge = 300'000;

// A product of random operands, and what it has to give.
template <class T>
struct Example {
  const Shape z;
  const Epilogue e;
  Random random;
  const Stored<T> a, b, addend, residual;
  const Stored<T> c;  // what is in the memory of C before
  Gemm<T> g;

  Example(const Shape& shape, const Layouts& layouts, const Epilogue& epilogue)
      : z(shape),
        e(epilogue),
        a(z.batch, z.m, z.k, layouts.a, random),
        b(z.batch, z.k, z.n, layouts.b, random),
        addend(z.batch, z.m, z.n, layouts.c, random),
        residual(z.batch, z.m, z.n, Layout::Rows, random),
        c(z.batch, z.m, z.n, layouts.c, random) {
    using Acc = Accumulator<T>;
    g.m = z.m, g.n = z.n, g.k = z.k, g.batch = z.batch;
    g.a = a.view, g.b = b.view;
    g.a_batch = a.batch, g.b_batch = b.batch, g.c_batch = c.batch;
    g.alpha = static_cast<Acc>(e.alpha), g.beta = static_cast<Acc>(e.beta);
    g.act = e.act, g.act_last = e.act_last;
    if (e.addend) g.addend = addend.view, g.addend_batch = addend.batch;
    if (e.row_bias) g.addend = {addend.data.data(), 0, 1};
    if (e.residual) g.residual = residual.view, g.residual_batch = residual.batch;
  }

  // The memory of C afterwards.
  std::vector<T> result(ThreadPool* pool) {
    std::vector<T> out = c.data;
    g.c = {out.data(), c.view.row_stride, c.view.col_stride};
    const UsePool use(pool);
    run(g);
    return out;
  }

  void compare(int64_t s, int64_t i, int64_t j, T found) const {
    double sum = 0, size = 0;
    for (int64_t p = 0; p < z.k; ++p) {
      const double x = a.at(s, i, p) * b.at(s, p, j);
      sum += x;
      size += std::fabs(x);
    }
    const double y = e.addend     ? addend.at(s, i, j)
                     : e.row_bias ? value(addend.data[static_cast<size_t>(j)])
                                  : 0;
    const double r = e.residual ? residual.at(s, i, j) : 0;
    double x = e.alpha * sum + e.beta * y;
    x = e.act_last ? apply(e.act, x + r) : apply(e.act, x) + r;
    if constexpr (std::is_integral_v<T>) {
      ASSERT_EQ(found, static_cast<T>(static_cast<int64_t>(x))) << s << " " << i << " " << j;
    } else {
      const double magnitude = std::fabs(e.alpha) * size + std::fabs(e.beta * y) + std::fabs(r);
      const double acc_eps = std::is_same_v<T, double> ? 1.2e-16 : 6e-8;
      const double bound = 1.2 * (static_cast<double>(z.k) + 16) * acc_eps * magnitude +
                           epsilon<T>() * std::fabs(x) + 1e-30;
      ASSERT_NEAR(value(found), x, bound) << s << " " << i << " " << j;
    }
  }
};

template <class T>
void check(const Shape& z, const Layouts& layouts, const Epilogue& e) {
  SCOPED_TRACE("m " + std::to_string(z.m) + " n " + std::to_string(z.n) + " k " +
               std::to_string(z.k) + " batch " + std::to_string(z.batch) + " layouts " +
               std::to_string(static_cast<int>(layouts.a)) +
               std::to_string(static_cast<int>(layouts.b)) +
               std::to_string(static_cast<int>(layouts.c)));
  Example<T> example(z, layouts, e);
  const std::vector<T> first = example.result(nullptr);
  if (z.m * z.n * z.k >= kLarge) {
    for (const size_t threads : {2, 3, 17}) {
      ThreadPool pool(threads);
      const std::vector<T> out = example.result(&pool);
      ASSERT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(T)), 0)
          << threads << " threads";
    }
  }
  const Stored<T>& c = example.c;
  std::vector<bool> written(first.size());
  for (int64_t s = 0; s < z.batch; ++s) {
    for (int64_t i = 0; i < z.m; ++i) {
      for (int64_t j = 0; j < z.n; ++j) {
        const auto at =
            static_cast<size_t>(s * c.batch + i * c.view.row_stride + j * c.view.col_stride);
        written[at] = true;
        example.compare(s, i, j, first[at]);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    const bool kept = written[i] || std::memcmp(&first[i], &c.data[i], sizeof(T)) == 0;
    ASSERT_TRUE(kept) << "beside C at " << i;
  }
}

template <class T>
class GemmOf : public testing::Test {};
using Types = TypesOf<void ET_OPERANDS(ET_TYPE)>;
TYPED_TEST_SUITE(GemmOf, Types);

constexpr Layout kLayouts[] = {Layout::Rows, Layout::Columns, Layout::Gaps};

TYPED_TEST(GemmOf, AgreesWithADoubleSumInEveryLayout) {
  for_each_target([] {
    for (const Layout a : kLayouts) {
      for (const Layout b : kLayouts) {
        for (const Layout c : kLayouts) check<TypeParam>({13, 37, 19, 1}, {a, b, c}, {});
      }
      for (const int64_t m : {2, 8, 9, 16, 17}) {
        check<TypeParam>({m, 37, 19, 2}, {a, Layout::Windows, Layout::Rows}, {});
      }
    }
  });
}

TYPED_TEST(GemmOf, AgreesForTailsOfEverySize) {
  for_each_target([] {
    for (const Layout b : {Layout::Rows, Layout::Columns}) {
      for (const int64_t m : {0, 1, 2, 3, 4, 5, 8, 9, 12, 25}) {
        for (const int64_t n : {0, 1, 3, 16, 17, 33, 64, 205}) {
          check<TypeParam>({m, n, 21, 1}, {Layout::Rows, b, Layout::Rows}, {});
        }
      }
      for (const int64_t k : {0, 1, 2, 3, 4, 5, 15, 16, 17, 64}) {
        for (const int64_t m : {1, 3, 7, 14}) {
          check<TypeParam>({m, 50, k, 1}, {Layout::Rows, b, Layout::Rows}, {});
        }
      }
    }
  });
}

TYPED_TEST(GemmOf, AddsScaledTerms) {
  for (const int64_t m : {1, 5, 20}) {
    for (const Layout c : kLayouts) {
      check<TypeParam>({m, 45, 18, 2}, {Layout::Rows, Layout::Columns, c},
                       {.alpha = 3, .beta = 2, .addend = true});
      check<TypeParam>({m, 45, 18, 2}, {Layout::Rows, Layout::Rows, c},
                       {.row_bias = true, .residual = true});
    }
  }
}

TYPED_TEST(GemmOf, SumsDeepProductsInParts) {
  for (const Layout b : {Layout::Rows, Layout::Columns}) {
    check<TypeParam>({17, 70, 3100, 1}, {Layout::Rows, b, Layout::Rows}, {.addend = true});
  }
}

TYPED_TEST(GemmOf, DividesManyRowsAndColumns) {
  check<TypeParam>({300, 500, 30, 2}, {Layout::Rows, Layout::Rows, Layout::Rows}, {});
  check<TypeParam>({1100, 40, 9, 1}, {Layout::Columns, Layout::Columns, Layout::Rows}, {});
}

template <class T>
class ActivatedGemm : public testing::Test {};
using FloatingTypes = TypesOf<void ET_STORED_FLOATS(ET_TYPE)>;
TYPED_TEST_SUITE(ActivatedGemm, FloatingTypes);

TYPED_TEST(ActivatedGemm, AppliesFunctionsBeforeOrAfterTheResidual) {
  for_each_target([] {
    for (const Activation act :
         {relu(), Activation{Activation::Kind::Clamp, -1.5f, 6}, Activation{Activation::Kind::Gelu},
          Activation{Activation::Kind::Silu}}) {
      for (const int64_t m : {1, 20}) {
        for (const bool last : {false, true}) {
          check<TypeParam>({m, 45, 18, 1}, {Layout::Rows, Layout::Columns, Layout::Rows},
                           {.row_bias = true, .residual = true, .act_last = last, .act = act});
        }
      }
    }
  });
}

// Few rows of A and a large B whose rows are contiguous: threads share K, and many columns are
// divided.
TYPED_TEST(ActivatedGemm, SharesTheDepthOfFewRows) {
  for_each_target([] {
    for (const auto& [n, k] : {std::pair{301, 260}, {517, 267}, {4101, 70}}) {
      for (const int64_t m : {1, 2, 3, 4, 7, 8}) {
        for (const Layout layout : {Layout::Rows, Layout::Gaps}) {
          check<TypeParam>({m, n, k, 1}, {layout, layout, layout}, {.addend = true});
        }
      }
    }
    check<TypeParam>({1, 301, 260, 3}, {Layout::Rows, Layout::Rows, Layout::Rows},
                     {.row_bias = true, .residual = true, .act_last = true, .act = relu()});
  });
}

// Enough rows to pack B, few enough to copy it while tiles are multiplied: several blocks, the last
// of whole vectors or not, in one part or in several.
TYPED_TEST(ActivatedGemm, FinishesWhatPackedPanelsGive) {
  for_each_target([] {
    for (const auto& [n, k] : {std::pair{224, 301}, {217, 301}, {145, 1540}}) {
      for (const Layout b : {Layout::Rows, Layout::Columns}) {
        check<TypeParam>({61, n, k, 1}, {Layout::Rows, b, Layout::Rows}, {.row_bias = true});
        check<TypeParam>({61, n, k, 1}, {Layout::Rows, b, Layout::Rows},
                         {.row_bias = true, .residual = true, .act_last = true, .act = relu()});
      }
    }
  });
}

// More rows of A than dot products take, but fewer than B has columns: columns of B are read in
// place. Some rows of A do not fill a vector; there are one or several parts of the sum, columns
// that compete for a cache set, and panels of A that do not fit a cache together.
TYPED_TEST(ActivatedGemm, ReadsContiguousColumnsInPlace) {
  const Layouts layouts = {Layout::Rows, Layout::Columns, Layout::Rows};
  for_each_target([&] {
    for (const int64_t m : {21, 24, 25, 29, 30, 31, 33, 35, 36, 37, 40, 49, 66, 97}) {
      check<TypeParam>({m, 131, 70, 1}, layouts, {.row_bias = true});
    }
    for (const int64_t m : {33, 40, 47}) {
      check<TypeParam>({m, 150, 1601, 1}, layouts,
                       {.row_bias = true, .residual = true, .act_last = true, .act = relu()});
      check<TypeParam>({m, 1100, 21, 1}, {Layout::Rows, Layout::Columns, Layout::Gaps},
                       {.alpha = 3, .beta = 2, .addend = true});
      check<TypeParam>({m, 50, 2047, 1}, layouts, {.act = Activation{Activation::Kind::Gelu}});
    }
    check<TypeParam>({500, 501, 90, 1}, layouts, {.residual = true});
  });
}

ET_ON_EACH_TARGET(Gemm_);

TEST_P(Gemm_, LeavesTheAddendUnreadWhereBetaIsZero) {
  const std::vector<float> a(6, 1), b(6, 2), nan(4, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> c(4);
  Gemm<float> g;
  g.m = g.n = 2, g.k = 3;
  g.a = {a.data(), 3, 1}, g.b = {b.data(), 2, 1}, g.c = {c.data(), 2, 1},
  g.addend = {nan.data(), 2, 1};
  g.beta = 0;
  run(g);
  EXPECT_EQ(c, std::vector<float>(4, 6));
}

TEST_P(Gemm_, AddsTheResidualInPlace) {
  const std::vector<float> a(30 * 8, 1), b(8 * 40, 2);
  std::vector<float> c(30 * 40, 5);
  Gemm<float> g;
  g.m = 30, g.n = 40, g.k = 8;
  g.a = {a.data(), 8, 1}, g.b = {b.data(), 40, 1}, g.c = {c.data(), 40, 1},
  g.residual = {c.data(), 40, 1};
  run(g);
  EXPECT_EQ(c, std::vector<float>(30 * 40, 21));
}

TEST_P(Gemm_, MultipliesOperandsFromSources) {
  struct Plus {
    int64_t scale;
  };
  const Plus rows = {3}, columns = {5};
  const auto as_a = [](const void* matrix, int64_t s, int64_t i0, int64_t ni, int64_t p0,
                       int64_t np, float* to, int64_t ld) {
    for (int64_t i = 0; i < ni; ++i) {
      for (int64_t p = 0; p < np; ++p) {
        to[i * ld + p] = static_cast<float>(static_cast<const Plus*>(matrix)->scale * (i0 + i) +
                                            (p0 + p) % 7 + s);
      }
    }
  };
  const auto as_b = [](const void* matrix, int64_t s, int64_t j0, int64_t nj, int64_t p0,
                       int64_t np, float* to, int64_t ld) {
    for (int64_t p = 0; p < np; ++p) {
      for (int64_t j = 0; j < ld; ++j) {
        const int64_t x =
            static_cast<const Plus*>(matrix)->scale * ((j0 + j) % 4) - (p0 + p) % 3 + s;
        to[p * ld + j] = j < nj ? static_cast<float>(x) : 0;
      }
    }
  };
  constexpr int64_t kM = 29, kN = 75, kK = 800;
  std::vector<float> c(2 * kM * kN);
  Gemm<float> g;
  g.m = kM, g.n = kN, g.k = kK, g.batch = 2;
  g.a_source = {as_a, &rows}, g.b_source = {as_b, &columns};
  g.c = {c.data(), kN, 1}, g.c_batch = kM * kN;
  run(g);
  for (int64_t s = 0; s < 2; ++s) {
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        int64_t sum = 0;  // below 2^24: exact
        for (int64_t p = 0; p < kK; ++p) sum += (3 * i + p % 7 + s) * (5 * (j % 4) - p % 3 + s);
        ASSERT_EQ(c[static_cast<size_t>((s * kM + i) * kN + j)], static_cast<float>(sum))
            << i << " " << j;
      }
    }
  }
}

TEST_P(Gemm_, IsRefusedMemoryBeforeAnythingIsWritten) {
  std::vector<float> a(40 * 40, 1), c(40 * 50, 7);
  std::vector<F16> half(40 * 40), half_c(40 * 50);
  Gemm<float> g;
  g.m = 40, g.n = 50, g.k = 40;
  g.a = {a.data(), 40, 1}, g.b = {a.data(), 1, 0}, g.c = {c.data(), 50, 1};
  expect_refusal(g);
  EXPECT_EQ(c, std::vector<float>(40 * 50, 7));
  for (const int64_t m : {3, 40}) {
    Gemm<F16> h;
    h.m = m, h.n = 50, h.k = 40;
    h.a = {half.data(), 40, 1}, h.b = {half.data(), 0, 1}, h.c = {half_c.data(), 50, 1};
    expect_refusal(h);
  }
}

TEST_P(Gemm_, MultipliesFewRowsWithoutMemoryForTheirSums) {
  constexpr int64_t kSize = 300;
  std::vector<float> a(kSize, 1), b(kSize * kSize, 2), c(kSize, 7);
  Gemm<float> g;
  g.m = 1, g.n = g.k = kSize;
  g.a = {a.data(), kSize, 1}, g.b = {b.data(), kSize, 1}, g.c = {c.data(), kSize, 1};
  HeapScratch none(0);
  ASSERT_TRUE(g.run(none));
  EXPECT_EQ(c, std::vector<float>(kSize, 2 * kSize));
}

TEST_P(Gemm_, RefusesSizesThatAnInt64DoesNotCount) {
  const float one = 1;
  float c = 7;
  for (const int64_t k : {int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
    Gemm<float> g;
    g.m = g.n = 1, g.k = k;
    g.a = {&one, 0, 0}, g.b = {&one, 0, 0}, g.c = {&c, 0, 0};
    HeapScratch scratch;
    EXPECT_FALSE(g.run(scratch));
    g.k = 1, g.batch = k;
    EXPECT_FALSE(g.run(scratch));
  }
  EXPECT_EQ(c, 7);
}

TEST_P(Gemm_, TakesEmptySizes) {
  const std::vector<float> a(16, 1), bias = {1, 2, 3, 4};
  for (const int64_t m : {0, 1, 4}) {
    for (const int64_t n : {0, 1, 4}) {
      std::vector<float> c(16, 7);
      Gemm<float> g;
      g.m = m, g.n = n;
      g.a = {a.data(), 0, 1}, g.b = {a.data(), 4, 1}, g.c = {c.data(), 4, 1};
      g.addend = {bias.data(), 0, 1};
      run(g);
      for (int64_t i = 0; i < 16; ++i) {
        const bool inside = i / 4 < m && i % 4 < n;
        EXPECT_EQ(c[static_cast<size_t>(i)], inside ? bias[static_cast<size_t>(i % 4)] : 7);
      }
    }
  }
}

TEST(Division, LeavesNoWorkerWithoutABlock) {
  constexpr int64_t kTall = 48, kMany = 1 << 20;  // rows of a block at least; units of one at most
  for (const size_t threads : {1, 2, 5, 16}) {
    ThreadPool pool(threads);
    const UsePool use(&pool);
    for (const int64_t m : {1, 16, 47, 100, 1000}) {
      for (const int64_t n : {1, 32, 100, 768, 5000}) {
        for (const int64_t workers : {1, 3, 100}) {
          gemm::Division d;
          d.m = m, d.n = n, d.k = 64, d.panel_columns = 32, d.most_workers = workers;
          d.divide_columns(kMany, d.most_row_blocks(kTall));
          d.divide_rows(1, kTall, gemm::Division::even_blocks(), kMany);
          const int64_t most = std::max<int64_t>(m / kTall, 1) * gemm::ceil_div(n, 32);
          EXPECT_GE(d.n_blocks(), std::min({static_cast<int64_t>(threads), workers, most}))
              << m << " x " << n << ", " << threads << " threads, " << workers << " workers";
          int64_t elements = 0;
          for (int64_t block = 0; block < d.n_blocks(); ++block) {
            const gemm::KSlice t = d.slice(block, 0);
            EXPECT_GT(t.ni, 0);
            EXPECT_GT(t.nj, 0);
            elements += t.ni * t.nj;
          }
          EXPECT_EQ(elements, m * n);
        }
      }
    }
  }
}

}  // namespace
}  // namespace executorch::cpu
