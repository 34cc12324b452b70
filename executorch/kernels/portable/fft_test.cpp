#include <executorch/kernels/portable/internal/testing.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

using executorch::aten::TensorImpl;
using namespace torch::executor::native;
using Complex = std::complex<double>;

namespace {

/// A list of complex numbers as a tensor.
struct List {
  std::vector<Complex> data;
  int32_t size = static_cast<int32_t>(data.size()), stride = 1;
  uint8_t order = 0;
  TensorImpl impl{ScalarType::ComplexDouble, 1, &size, data.data(), &order, &stride};

  explicit List(std::vector<Complex> items) : data(std::move(items)) {}
  List(const List&) = delete;
};

std::vector<Complex> transform(const std::vector<Complex>& x, bool forward) {
  executorch::runtime::runtime_init();
  PlatformMemoryAllocator memory;
  KernelRuntimeContext ctx(nullptr, &memory);
  List in(x), out(std::vector<Complex>(x.size()));
  const int64_t dim = 0;
  Tensor result(&out.impl);
  _fft_c2c_out(ctx, Tensor(&in.impl), {&dim, 1}, 0, forward, result);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  return out.data;
}

std::vector<Complex> random_list(size_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<double> normal;
  std::vector<Complex> x(n);
  for (Complex& z : x) z = {normal(random), normal(random)};
  return x;
}

TEST(Fft, TransformsLinesOfAnyLength) {
  // Small factors; large ones, alone and with others.
  for (const size_t n : {1, 2, 3, 4, 6, 8, 30, 97, 101, 127, 128, 202, 509, 1018, 101 * 9}) {
    const std::vector<Complex> x = random_list(n);
    for (const bool forward : {true, false}) {
      const std::vector<Complex> found = transform(x, forward);
      const double bound = 64 * std::numeric_limits<double>::epsilon() * static_cast<double>(n);
      for (size_t k = 0; k < n; ++k) {
        Complex sum = 0;
        for (size_t i = 0; i < n; ++i) {
          const double angle = (forward ? -2 : 2) * M_PI * static_cast<double>(i * k % n);
          sum += x[i] * std::polar(1.0, angle / static_cast<double>(n));
        }
        ASSERT_LT(std::abs(found[k] - sum), bound) << n << " " << k;
      }
    }
  }
}

TEST(Fft, LinesOfALargePrimeLengthTakeNoLonger) {
  constexpr size_t kPrime = 100003;
  const std::vector<Complex> x = random_list(kPrime);
  std::vector<Complex> back;
  expect_within(2, [&] { back = transform(transform(x, true), false); });
  for (size_t i = 0; i < kPrime; i += 997) {
    EXPECT_LT(std::abs(back[i] / static_cast<double>(kPrime) - x[i]), 1e-12);
  }
}

TEST(Fft, ANumberWithoutDimsHasNoLines) {
  executorch::runtime::runtime_init();
  TensorFactory<ScalarType::Double> reals;
  List out({0, 0});
  for (const int64_t dim : {-1, 0}) {
    KernelRuntimeContext ctx;
    Tensor result(&out.impl);
    _fft_r2c_out(ctx, reals.ones({}), {&dim, 1}, 0, true, result);
    EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
  }
}

TEST(Fft, RealNumbersComeOfTheFirstHalfOfALine) {
  executorch::runtime::runtime_init();
  PlatformMemoryAllocator memory;
  KernelRuntimeContext ctx(nullptr, &memory);
  TensorFactory<ScalarType::Double> reals;
  Tensor found = reals.zeros({4});
  const int64_t dim = 0;
  for (const std::vector<Complex>& line :
       {std::vector<Complex>{10, {-2, 2}, -2}, std::vector<Complex>{10, {-2, 2}, -2, {7, 7}}}) {
    List in(line);
    _fft_c2r_out(ctx, Tensor(&in.impl), {&dim, 1}, 2, 4, found);
    EXPECT_TENSOR_CLOSE(found, reals.make({4}, {1, 2, 3, 4}));
  }
  List less({10, {-2, 2}});
  _fft_c2r_out(ctx, Tensor(&less.impl), {&dim, 1}, 2, 4, found);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

}  // namespace
