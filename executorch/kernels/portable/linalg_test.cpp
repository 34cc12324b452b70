#include <executorch/kernels/portable/internal/factor.h>
#include <executorch/kernels/portable/internal/testing.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

using namespace torch::executor::native;

namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

class Linalg : public KernelTest {
 protected:
  // An out that takes any shape of this rank and no more elements.
  Tensor out(size_t rank, int32_t room = 1) {
    std::vector<int32_t> sizes(rank, 1);
    if (rank > 0) sizes[0] = room;
    return floats.zeros(sizes, TensorShapeDynamism::DYNAMIC_BOUND);
  }
  Tensor ints_out(size_t rank) {
    return ints.zeros(std::vector<int32_t>(rank, 1), TensorShapeDynamism::DYNAMIC_BOUND);
  }
  // Fails or does not, but soon.
  void expect_soon(const char* what, const std::function<void(KernelRuntimeContext&)>& run) {
    PlatformMemoryAllocator memory;
    KernelRuntimeContext ctx(nullptr, &memory);
    expect_within(
        2, [&] { run(ctx); }, what);
  }
  Error error_of(const std::function<void(KernelRuntimeContext&)>& run) {
    PlatformMemoryAllocator memory;
    KernelRuntimeContext ctx(nullptr, &memory);
    run(ctx);
    return ctx.failure_state();
  }
};

TEST_F(Linalg, NothingIsComputedOfHugeExtentsBesideZero) {
  for (const std::vector<int32_t>& shape : std::vector<std::vector<int32_t>>{{0, kMost, kMost},
                                                                             {kMost, 0},
                                                                             {0, kMost},
                                                                             {2, 0, kMost},
                                                                             {2, kMost, 0},
                                                                             {kMost, 0, 0}}) {
    Tensor a = floats.zeros(shape);
    const size_t batch = shape.size() - 2;
    for (const char* mode : {"reduced", "complete", "r"}) {
      Tensor q = out(shape.size()), r = out(shape.size()), none = out(1);
      expect_soon(mode,
                  [&](auto& ctx) { linalg_qr_out(ctx, a, mode, mode[1] == 0 ? none : q, r); });
    }
    for (const bool full : {false, true}) {
      for (const bool vectors : {false, true}) {
        Tensor u = out(vectors ? shape.size() : 1), s = out(batch + 1);
        Tensor vh = out(vectors ? shape.size() : 1);
        expect_soon("svd", [&](auto& ctx) {
          _linalg_svd_U(ctx, a, full, vectors, std::nullopt, u, s, vh);
        });
      }
    }
    Tensor lu = out(shape.size()), pivots = ints_out(batch + 1), info = ints_out(batch);
    expect_soon("lu",
                [&](auto& ctx) { linalg_lu_factor_ex_out(ctx, a, true, false, lu, pivots, info); });
    Tensor values = out(batch + 1), vectors = out(shape.size());
    expect_soon("eigh",
                [&](auto& ctx) { _linalg_eigh_eigenvalues(ctx, a, "L", true, values, vectors); });
    Tensor square = out(shape.size());
    expect_soon("cholesky",
                [&](auto& ctx) { linalg_cholesky_ex_L(ctx, a, false, false, square, info); });
    expect_soon("inv", [&](auto& ctx) { linalg_inv_ex_inverse(ctx, a, false, square, info); });
    Tensor value = out(batch), sign = out(batch);
    expect_soon("det", [&](auto& ctx) { _linalg_det_result(ctx, a, value, lu, pivots); });
    expect_soon("slogdet",
                [&](auto& ctx) { _linalg_slogdet_sign(ctx, a, sign, value, lu, pivots); });
    for (const bool left : {false, true}) {
      Tensor x = out(shape.size());
      expect_soon("solve", [&](auto& ctx) {
        _linalg_solve_ex_result(ctx, a, a, left, false, x, lu, pivots, info);
      });
      Tensor none = floats.zeros(std::vector<int32_t>(shape.size(), 0));
      expect_soon("solve nothing", [&](auto& ctx) {
        _linalg_solve_ex_result(ctx, none, a, left, false, x, lu, pivots, info);
      });
      expect_soon("solve_triangular",
                  [&](auto& ctx) { linalg_solve_triangular_out(ctx, a, a, true, left, false, x); });
    }
  }
}

TEST_F(Linalg, NothingIsSolvedWhereTheFactorsHaveNoRoom) {
  Tensor a = floats.make({2, 2}, {2, 0, 0, 4}), b = floats.make({2, 1}, {2, 4});
  Tensor x = floats.zeros({2, 1}), small = floats.zeros({1, 2});
  Tensor pivots = ints.zeros({2}), info = ints.zeros({});
  EXPECT_EQ(error_of([&](auto& ctx) {
              _linalg_solve_ex_result(ctx, a, b, true, false, x, small, pivots, info);
            }),
            Error::InvalidArgument);
  EXPECT_TENSOR_EQ(x, floats.zeros({2, 1}));
}

TEST_F(Linalg, DeterminantOfNothingIsOne) {
  Tensor a = floats.zeros({2, 0, 0});
  Tensor value = floats.zeros({2}), lu = floats.zeros({2, 0, 0}), pivots = ints.zeros({2, 0});
  EXPECT_EQ(error_of([&](auto& ctx) { _linalg_det_result(ctx, a, value, lu, pivots); }), Error::Ok);
  EXPECT_EQ(value.const_data_ptr<float>()[0], 1);
  EXPECT_EQ(value.const_data_ptr<float>()[1], 1);
}

TEST_F(Linalg, SolvesVectorsAndRefusesWhatFitsNoSide) {
  Tensor a = floats.make({2, 2}, {2, 0, 1, 4});
  struct Case {
    std::vector<int32_t> shape;
    bool left;
    bool fits;
  };
  for (const Case& c : std::vector<Case>{{{2}, true, true},
                                         {{2}, false, true},
                                         {{3}, true, false},
                                         {{3}, false, false},
                                         {{}, true, false},
                                         {{}, false, false},
                                         {{0}, false, false},
                                         {{2, 1}, true, true},
                                         {{1, 2}, false, true},
                                         {{1, 2}, true, false}}) {
    Tensor b = floats.ones(c.shape);
    Tensor x = floats.zeros(c.shape), lu = floats.zeros({2, 2});
    Tensor pivots = ints.zeros({2}), info = ints.zeros({});
    const Error error = error_of(
        [&](auto& ctx) { _linalg_solve_ex_result(ctx, a, b, c.left, false, x, lu, pivots, info); });
    EXPECT_EQ(error == Error::Ok, c.fits) << c.shape.size() << " " << c.left;
    if (!c.fits) continue;
    const float* v = x.const_data_ptr<float>();  // a x = 1, x a = 1
    EXPECT_FLOAT_EQ(v[0], c.left ? 0.5f : 0.375f);
    EXPECT_FLOAT_EQ(v[1], c.left ? 0.125f : 0.25f);
  }
}

TEST_F(Linalg, IterationsEndWhateverTheNumbersAre) {
  constexpr int32_t kN = 60;
  std::mt19937 random(0);
  std::normal_distribution<double> normal;
  const auto ordinary = [&](size_t) { return normal(random); };
  const std::vector<std::function<double(size_t)>> kinds = {
      [](size_t) { return NAN; },
      [](size_t) { return INFINITY; },
      [&](size_t i) { return i == 7 ? NAN : ordinary(i); },
      [&](size_t i) { return i == 7 ? INFINITY : ordinary(i); },
      [&](size_t i) { return ordinary(i) * 1e300; },
      [&](size_t i) { return ordinary(i) * 1e-310; },
      [&](size_t i) { return ordinary(i) * std::pow(10.0, static_cast<double>(i % 600) - 300); },
      [](size_t) { return 1.0; },
      ordinary,
  };
  for (const auto& kind : kinds) {
    std::vector<double> data(kN * kN);
    for (size_t i = 0; i < data.size(); ++i) data[i] = kind(i);
    Tensor a = doubles.make({kN, kN}, data);
    Tensor s = doubles.zeros({kN}), u = doubles.zeros({kN, kN}), v = doubles.zeros({kN, kN});
    expect_soon("eigh", [&](auto& ctx) { _linalg_eigh_eigenvalues(ctx, a, "L", true, s, u); });
    expect_soon("svd",
                [&](auto& ctx) { _linalg_svd_U(ctx, a, true, true, std::nullopt, u, s, v); });
  }
}

TEST_F(Linalg, BasisOfAThinMatrixIsCompletedInTimeLinearInItsSize) {
  constexpr int32_t kRows = 1500;
  std::mt19937 random(0);
  std::normal_distribution<double> normal;
  std::vector<double> data(kRows * 2);
  for (double& x : data) x = normal(random);
  Tensor u = doubles.zeros({kRows, kRows}), s = doubles.zeros({2}), vh = doubles.zeros({2, 2});
  Tensor a = doubles.make({kRows, 2}, data);
  expect_soon("svd", [&](auto& ctx) { _linalg_svd_U(ctx, a, true, true, std::nullopt, u, s, vh); });
  const double* pu = u.const_data_ptr<double>();
  const double *ps = s.const_data_ptr<double>(), *pv = vh.const_data_ptr<double>();
  const double bound = 100 * std::numeric_limits<double>::epsilon();
  for (size_t i = 0; i < 6; ++i) {
    for (size_t j = 0; j < kRows; j += j < 6 ? 1 : 97) {
      double dot = 0;
      for (size_t r = 0; r < kRows; ++r) dot += pu[r * kRows + i] * pu[r * kRows + j];
      EXPECT_NEAR(dot, i == j ? 1 : 0, bound) << i << " " << j;
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    const double *from = pu + r * kRows, made = from[0] * ps[0] * pv[0] + from[1] * ps[1] * pv[2];
    EXPECT_NEAR(made, data[2 * r], bound * ps[0]);
  }
}

TEST_F(Linalg, SingularValuesOfManyRowsStillMakeTheMatrix) {
  constexpr int32_t kRows = 300, kColumns = 20;
  std::mt19937 random(0);
  std::normal_distribution<double> normal;
  std::vector<double> data(kRows * kColumns);
  for (double& x : data) x = normal(random);
  Tensor a = doubles.make({kRows, kColumns}, data);
  Tensor u = doubles.zeros({kRows, kColumns}), s = doubles.zeros({kColumns});
  Tensor vh = doubles.zeros({kColumns, kColumns});
  ASSERT_EQ(
      error_of([&](auto& ctx) { _linalg_svd_U(ctx, a, false, true, std::nullopt, u, s, vh); }),
      Error::Ok);
  const double* pu = u.const_data_ptr<double>();
  const double* ps = s.const_data_ptr<double>();
  const double* pv = vh.const_data_ptr<double>();
  const double bound = std::numeric_limits<double>::epsilon() * kRows * ps[0];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < kColumns; ++c) {
      double sum = 0;
      for (size_t k = 0; k < kColumns; ++k) {
        sum += pu[r * kColumns + k] * ps[k] * pv[k * kColumns + c];
      }
      ASSERT_NEAR(sum, data[r * kColumns + c], bound);
    }
  }
}

using Numbers = std::vector<double>;

// a has n rows of k numbers, b k rows of m.
Numbers multiply(const Numbers& a, const Numbers& b, size_t n, size_t k, size_t m) {
  Numbers c(n * m);
  for (size_t i = 0; i < n; ++i) {
    for (size_t p = 0; p < k; ++p) {
      for (size_t j = 0; j < m; ++j) c[i * m + j] += a[i * k + p] * b[p * m + j];
    }
  }
  return c;
}
Numbers transpose(const Numbers& a, size_t n, size_t m) {  // of n rows
  Numbers t(n * m);
  for (size_t i = 0; i < n * m; ++i) t[i % m * n + i / m] = a[i];
  return t;
}
Numbers identity(size_t n) {
  Numbers ones(n * n);
  for (size_t i = 0; i < n; ++i) ones[i * n + i] = 1;
  return ones;
}
Numbers numbers_of(const Tensor& t) {
  const double* data = t.const_data_ptr<double>();
  return Numbers(data, data + t.numel());
}
void expect_near(const Numbers& got, const Numbers& expected, double bound) {
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], bound) << i;
}

struct Matrix {
  int32_t rows, columns;
  Numbers data;
  size_t n() const { return static_cast<size_t>(rows); }
  size_t m() const { return static_cast<size_t>(columns); }
  size_t k() const { return std::min(n(), m()); }
  double bound() const { return 1e-13 * static_cast<double>(n() + m()); }
};

// Sizes on both sides of where blocks are divided, and none of the shapes that divide evenly.
class LinalgOfLargeMatrices : public Linalg {
 protected:
  using Sizes = std::vector<std::pair<int32_t, int32_t>>;

  std::vector<Matrix> random_matrices(const Sizes& sizes) {
    std::mt19937 random(0);
    std::normal_distribution<double> normal;
    std::vector<Matrix> matrices;
    for (const auto& [rows, columns] : sizes) {
      Matrix& matrix = matrices.emplace_back(Matrix{rows, columns, {}});
      matrix.data.resize(matrix.n() * matrix.m());
      for (double& x : matrix.data) x = normal(random);
    }
    return matrices;
  }
  Tensor make(const Matrix& matrix) {
    return doubles.make({matrix.rows, matrix.columns}, matrix.data);
  }
  // The product with the transpose, plus the identity.
  static Numbers positive(const Matrix& matrix) {
    const size_t n = matrix.n();
    Numbers product = multiply(matrix.data, transpose(matrix.data, n, n), n, n, n);
    for (size_t i = 0; i < n; ++i) product[i * n + i] += 1;
    return product;
  }

  const Sizes squares_ = {{31, 31}, {33, 33}, {200, 200}};
  const Sizes all_ = {{31, 31},  {33, 33},  {64, 65},  {200, 200},
                      {131, 70}, {70, 131}, {300, 20}, {20, 300}};
};

TEST_F(LinalgOfLargeMatrices, OrthogonalColumnsAndATriangleMultiplyToTheMatrix) {
  for (const Matrix& matrix : random_matrices(all_)) {
    const size_t n = matrix.n(), m = matrix.m(), k = matrix.k();
    Tensor a = make(matrix);
    Tensor q = doubles.zeros({matrix.rows, static_cast<int32_t>(k)});
    Tensor r = doubles.zeros({static_cast<int32_t>(k), matrix.columns});
    ASSERT_EQ(error_of([&](auto& ctx) { linalg_qr_out(ctx, a, "reduced", q, r); }), Error::Ok);
    const Numbers columns = numbers_of(q), triangle = numbers_of(r);
    expect_near(multiply(columns, triangle, n, k, m), matrix.data, matrix.bound());
    expect_near(multiply(transpose(columns, n, k), columns, k, n, k), identity(k), matrix.bound());
    for (size_t i = 0; i < k * m; ++i) {
      ASSERT_TRUE(i / m <= i % m || triangle[i] == 0) << i;
    }
  }
}

TEST_F(LinalgOfLargeMatrices, LowerAndUpperFactorMultiplyToTheRowsInThePivotsOrder) {
  for (const Matrix& matrix : random_matrices(all_)) {
    const size_t n = matrix.n(), m = matrix.m(), k = matrix.k();
    Tensor a = make(matrix), lu = doubles.zeros({matrix.rows, matrix.columns});
    Tensor pivots = ints.zeros({static_cast<int32_t>(k)}), info = ints.zeros({});
    ASSERT_EQ(
        error_of([&](auto& ctx) { linalg_lu_factor_ex_out(ctx, a, true, true, lu, pivots, info); }),
        Error::Ok);
    Numbers lower(n * k), upper(k * m), both = numbers_of(lu);
    for (size_t i = 0; i < n * k; ++i) {
      const size_t row = i / k, column = i % k;
      lower[i] = row > column ? both[row * m + column] : row == column ? 1 : 0;
      ASSERT_LE(std::fabs(lower[i]), 1);
    }
    for (size_t i = 0; i < k * m; ++i) upper[i] = i / m > i % m ? 0 : both[i];
    Numbers swapped = matrix.data;
    for (size_t i = 0; i < k; ++i) {
      const size_t other = static_cast<size_t>(pivots.const_data_ptr<int32_t>()[i]) - 1;
      if (other == i) continue;
      std::swap_ranges(&swapped[i * m], &swapped[i * m] + m, &swapped[other * m]);
    }
    expect_near(multiply(lower, upper, n, k, m), swapped, matrix.bound());
  }
}

TEST_F(LinalgOfLargeMatrices, AMatrixTimesItsInverseIsTheIdentity) {
  for (const Matrix& matrix : random_matrices(squares_)) {
    const size_t n = matrix.n();
    Tensor a = make(matrix), info = ints.zeros({});
    Tensor inverse = doubles.zeros({matrix.rows, matrix.rows});
    ASSERT_EQ(error_of([&](auto& ctx) { linalg_inv_ex_inverse(ctx, a, true, inverse, info); }),
              Error::Ok);
    expect_near(multiply(matrix.data, numbers_of(inverse), n, n, n), identity(n),
                1e3 * matrix.bound());
  }
}

TEST_F(LinalgOfLargeMatrices, CholeskyFactorsMultiplyToTheMatrixAndSolve) {
  for (const Matrix& matrix : random_matrices(squares_)) {
    const size_t n = matrix.n();
    const double bound = 100 * matrix.bound();
    const Numbers product = positive(matrix);
    Tensor a = make(matrix), info = ints.zeros({});
    Tensor l = doubles.zeros({matrix.rows, matrix.rows});
    Tensor x = doubles.zeros({matrix.rows, matrix.rows});
    for (const bool upper : {false, true}) {
      Tensor p = doubles.make({matrix.rows, matrix.rows}, product);
      ASSERT_EQ(error_of([&](auto& ctx) { linalg_cholesky_ex_L(ctx, p, upper, true, l, info); }),
                Error::Ok);
      const Numbers factor = numbers_of(l), transposed = transpose(factor, n, n);
      expect_near(
          upper ? multiply(transposed, factor, n, n, n) : multiply(factor, transposed, n, n, n),
          product, bound);
      for (const bool left : {false, true}) {
        ASSERT_EQ(error_of([&](auto& ctx) {
                    linalg_solve_triangular_out(ctx, l, a, upper, left, false, x);
                  }),
                  Error::Ok);
        const Numbers solved = numbers_of(x);
        expect_near(left ? multiply(factor, solved, n, n, n) : multiply(solved, factor, n, n, n),
                    matrix.data, bound);
      }
    }
  }
}

TEST_F(LinalgOfLargeMatrices, APivotThatFailsIsToldByItsPlaceInTheWholeMatrix) {
  for (const Matrix& matrix : random_matrices(squares_)) {
    const size_t n = matrix.n();
    Tensor info = ints.zeros({}), result = doubles.zeros({matrix.rows, matrix.rows});
    Numbers indefinite = positive(matrix);
    indefinite[(n - 2) * n + n - 2] = -1;
    Tensor p = doubles.make({matrix.rows, matrix.rows}, indefinite);
    ASSERT_EQ(
        error_of([&](auto& ctx) { linalg_cholesky_ex_L(ctx, p, false, false, result, info); }),
        Error::Ok);
    EXPECT_EQ(info.const_data_ptr<int32_t>()[0], matrix.rows - 1);
    Numbers singular = matrix.data;
    for (size_t i = 0; i < n; ++i) singular[i * n + n - 1] = 0;
    Tensor z = doubles.make({matrix.rows, matrix.rows}, singular);
    ASSERT_EQ(error_of([&](auto& ctx) { linalg_inv_ex_inverse(ctx, z, false, result, info); }),
              Error::Ok);
    EXPECT_EQ(info.const_data_ptr<int32_t>()[0], matrix.rows);
  }
}

TEST_F(Linalg, ALargeInverseTakesTheTimeOfItsProducts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int32_t kN = 1000;
#else
  constexpr int32_t kN = 1500;
#endif
  std::mt19937 random(0);
  std::normal_distribution<double> normal;
  std::vector<double> data(kN * kN);
  for (double& x : data) x = normal(random);
  Tensor a = doubles.make({kN, kN}, data), inverse = doubles.zeros({kN, kN}), info = ints.zeros({});
  expect_soon("inverse", [&](auto& ctx) { linalg_inv_ex_inverse(ctx, a, true, inverse, info); });
  Tensor q = doubles.zeros({kN, kN}), r = doubles.zeros({kN, kN});
  expect_soon("qr", [&](auto& ctx) { linalg_qr_out(ctx, a, "reduced", q, r); });
}

}  // namespace
