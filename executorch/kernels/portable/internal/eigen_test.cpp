#include <executorch/kernels/portable/internal/eigen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace torch::executor::native::internal;

namespace {

struct Stored {
  Stored(int64_t rows, int64_t columns)
      : numbers(static_cast<size_t>(rows * columns)), m{numbers.data(), rows, columns} {}
  Stored(const Stored& other) : numbers(other.numbers), m(other.m) { m.data = numbers.data(); }
  std::vector<double> numbers;
  Matrix m;
};

/// Numbers of a normal distribution; rows of very different sizes where `is_graded`, and only
/// `rank` of them independent.
Stored random_matrix(int64_t rows, int64_t columns, int64_t rank, bool is_graded) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  Stored made(rows, columns);
  for (double& x : made.numbers) x = normal(random);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (is_graded) made.m[r][c] *= std::pow(10.0, static_cast<double>(r % 20) - 10);
      if (r >= rank) made.m[r][c] = made.m[r % rank][c] * static_cast<double>(r);
    }
  }
  return made;
}

double product(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double norm(const Stored& a) {
  return std::sqrt(
      product(a.numbers.data(), a.numbers.data(), static_cast<int64_t>(a.numbers.size())));
}

void expect_orthonormal(const Matrix& rows, const std::string& what) {
  const double tolerance = 1e-15 * 10 * static_cast<double>(rows.columns);
  for (int64_t p = 0; p < rows.rows; ++p) {
    for (int64_t q = 0; q <= p; ++q) {
      ASSERT_NEAR(product(rows[p], rows[q], rows.columns), p == q, tolerance) << what;
    }
  }
}

void expect_eigenvalues(const Stored& a, const std::string& what) {
  const int64_t n = a.m.rows;
  Stored used(a), vectors(n, n);
  std::vector<double> values(static_cast<size_t>(n)), alone(values),
      space(static_cast<size_t>(2 * n));
  find_eigenvalues(used.m, values.data(), vectors.m, space.data());
  expect_orthonormal(vectors.m, what);
  const double tolerance = 1e-15 * 10 * static_cast<double>(n) * norm(a);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        sum += vectors.m[k][r] * values[static_cast<size_t>(k)] * vectors.m[k][c];
      }
      ASSERT_NEAR(sum, a.m[r][c], tolerance) << what << " at " << r << ", " << c;
    }
  }
  Stored again(a);
  find_eigenvalues(again.m, alone.data(), {}, space.data());
  std::sort(values.begin(), values.end());
  std::sort(alone.begin(), alone.end());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], alone[i], tolerance) << what;
}

void expect_singular_values(const Stored& a, const std::string& what) {
  const int64_t n = a.m.rows;
  Stored u(a), v(n, n), gram(n, n), basis(n, n);
  std::vector<double> space(static_cast<size_t>(3 * n));
  set_identity(v.m);
  orthogonalize(u.m, v.m, gram.m, basis.m, space.data());
  expect_orthonormal(v.m, what);
  const double tolerance = 1e-15 * 20 * static_cast<double>(n);
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t q = 0; q < p; ++q) {
      const double one = std::sqrt(product(u.m[p], u.m[p], a.m.columns));
      const double other = std::sqrt(product(u.m[q], u.m[q], a.m.columns));
      // Rows as small as what rounding leaves of large ones have no direction.
      if (std::min(one, other) < 1e-15 * norm(a)) continue;
      const double sizes = one * other;
      ASSERT_LE(std::fabs(product(u.m[p], u.m[q], a.m.columns)), tolerance * sizes) << what;
    }
  }
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < a.m.columns; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += v.m[k][r] * u.m[k][c];
      ASSERT_NEAR(sum, a.m[r][c], tolerance * norm(a)) << what;
    }
  }
}

}  // namespace

TEST(Eigen, FindsEigenvalues) {
  for (const int64_t n : {1, 2, 3, 23, 24, 90}) {
    for (const bool is_graded : {false, true}) {
      for (const int64_t rank : {n, (n + 2) / 3}) {
        Stored a = random_matrix(n, n, rank, is_graded);
        for (int64_t r = 0; r < n; ++r) {
          for (int64_t c = 0; c < r; ++c) a.m[r][c] = a.m[c][r];
        }
        expect_eigenvalues(a, "n = " + std::to_string(n) + (is_graded ? ", graded" : "") +
                                  ", rank " + std::to_string(rank));
      }
    }
  }
}

TEST(Eigen, FindsEigenvaluesThatAreEqual) {
  for (const int64_t n : {2, 5, 40}) {
    Stored a(n, n);
    expect_eigenvalues(a, "zeros");
    set_identity(a.m);
    expect_eigenvalues(a, "ones on the diagonal");
    std::fill(a.numbers.begin(), a.numbers.end(), 1.0);
    expect_eigenvalues(a, "ones");
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) a.m[r][c] = r + c == n - 1 ? 1 : 0;
    }
    expect_eigenvalues(a, "ones across");
  }
}

TEST(Eigen, FindsSingularValues) {
  for (const int64_t n : {1, 2, 23, 24, 70}) {
    for (const bool is_graded : {false, true}) {
      for (const int64_t rank : {n, (n + 2) / 3}) {
        expect_singular_values(random_matrix(n, n + 5, rank, is_graded),
                               "n = " + std::to_string(n) + (is_graded ? ", graded" : "") +
                                   ", rank " + std::to_string(rank));
      }
    }
  }
}

TEST(Eigen, FindsSingularValuesOfVeryDifferentSizes) {
  // Few numbers, and rows that are nearly parallel to others.
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-37, 37);
  Stored a(60, 60);
  for (double& x : a.numbers) {
    if (random() % 20 == 0) x = normal(random) * std::pow(10, exponent(random));
  }
  expect_singular_values(a, "60");
}

TEST(Eigen, EndsWhereThereAreNoNumbers) {
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), 1e308, 1e-310}) {
    const int64_t n = 40;
    Stored a = random_matrix(n, n, n, false), v(n, n), gram(n, n), basis(n, n);
    a.m[3][5] = a.m[5][3] = odd;
    std::vector<double> space(3 * n), values(n);
    Stored u(a);
    set_identity(v.m);
    orthogonalize(u.m, v.m, gram.m, basis.m, space.data());
    find_eigenvalues(a.m, values.data(), v.m, space.data());
    EXPECT_EQ(std::isfinite(values[0]), std::isfinite(odd)) << odd;
  }
}
