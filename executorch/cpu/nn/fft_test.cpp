#include <executorch/cpu/nn/fft.h>
#include <executorch/cpu/nn/testing.h>

#include <algorithm>
#include <cmath>
#include <complex>

namespace executorch::cpu {
namespace {

using Kind = Fft::Kind;
using Number = std::complex<double>;

/// A set of lines that lie `apart` elements apart, of elements that lie `step` apart.
struct Layout {
  int64_t step, apart;
  int64_t at(int64_t line, int64_t i) const { return line * apart + i * step; }
};

/// exp(-+ 2 pi sqrt(-1) k / n) for all k.
std::vector<Number> roots_of(int64_t n, bool forward) {
  std::vector<Number> roots;
  for (int64_t k = 0; k < n; ++k) {
    const double angle = 2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
    roots.push_back(std::polar(1.0, forward ? -angle : angle));
  }
  return roots;
}

/// Transforms in T, and expects the results of sums in double. All elements of a line that the kind
/// has, as many as `kept`, are compared.
template <class T>
void expect_transform(Kind kind, bool forward, int64_t n, int64_t lines, Layout from, Layout to,
                      int64_t kept) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << " n " << n << " lines "
                                  << lines << " forward " << forward << " steps " << from.step
                                  << " " << to.step << " of " << sizeof(T) << " bytes");
  const bool from_real = kind == Kind::RealToComplex, to_real = kind == Kind::ComplexToReal;
  const int64_t read = to_real ? n / 2 + 1 : n;
  const auto parts = [&](Layout layout, int64_t count, bool real) {
    return static_cast<size_t>((layout.at(lines - 1, count - 1) + 1) * (real ? 1 : 2));
  };
  const std::vector<float> floats = normal_floats(parts(from, read, from_real));
  const std::vector<T> x(floats.begin(), floats.end());
  std::vector<T> y(parts(to, kept, to_real) + 1, T(7));
  const Fft::Dim dim{lines, from.apart, to.apart};
  const Fft fft{kind,     sizeof(T) == 8, forward,   n,       kept, 0.5,
                x.data(), y.data(),       from.step, to.step, &dim, 1};
  run(fft);
  EXPECT_EQ(y.back(), T(7)) << "behind the last line";
  const std::vector<Number> roots = roots_of(n, forward);
  const double bound =
      8 * epsilon<T>() * std::sqrt(static_cast<double>(n)) * std::log2(static_cast<double>(n) + 2);
  for (int64_t l = 0; l < lines; ++l) {
    std::vector<Number> line(static_cast<size_t>(n));
    for (int64_t i = 0; i < read; ++i) {
      const auto at = static_cast<size_t>(from.at(l, i));
      Number z = from_real ? Number(x[at]) : Number(x[2 * at], x[2 * at + 1]);
      if (to_real && (i == 0 || 2 * i == n)) z = z.real();
      line[static_cast<size_t>(i)] = z;
      if (to_real && i > 0) line[static_cast<size_t>(n - i)] = std::conj(z);
    }
    for (int64_t k = 0; k<kept; k += n> 1000 ? 97 : 1) {
      Number sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += line[static_cast<size_t>(i)] * roots[static_cast<size_t>(i * k % n)];
      }
      const auto at = static_cast<size_t>(to.at(l, k));
      const Number found = to_real ? Number(y[at]) : Number(y[2 * at], y[2 * at + 1]);
      ASSERT_LT(std::abs(found - sum * 0.5), bound) << "line " << l << " number " << k;
    }
  }
  expect_same_on_any_threads(y, [&] {
    std::fill(y.begin(), y.end(), T(7));
    run(fft);
  });
}

/// Lines one after the other, in each kind.
template <class T>
void expect_transforms(int64_t n, int64_t lines) {
  const int64_t half = n / 2 + 1;
  const Layout whole{1, n}, some{1, half};
  expect_transform<T>(Kind::ComplexToComplex, true, n, lines, whole, whole, n);
  expect_transform<T>(Kind::ComplexToComplex, false, n, lines, whole, whole, n);
  expect_transform<T>(Kind::RealToComplex, true, n, lines, whole, some, half);
  expect_transform<T>(Kind::ComplexToReal, false, n, lines, some, whole, n);
}

ET_ON_EACH_TARGET(Fft_);

TEST_P(Fft_, TransformsLinesOfAnyLength) {
  // Each factor by itself and with others, large primes, and lines that are cut.
  for (const int64_t n : {1,  2,  3,  4,  5,  6,   7,   8,   9,   12,  15,  16,
                          30, 32, 48, 77, 97, 101, 128, 202, 400, 480, 512, 909}) {
    for (const int64_t lines : {1, 5, 18}) {
      expect_transforms<float>(n, lines);
      expect_transforms<double>(n, lines);
    }
  }
}

TEST_P(Fft_, TransformsLongLines) {
  for (const int64_t n : {1920, 4096, 8192, 3 * 5 * 7 * 11 * 13, 10007}) {
    expect_transforms<float>(n, 2);
  }
  expect_transforms<double>(6000, 1);
}

TEST_P(Fft_, TakesLinesInAnyDirection) {
  for (const int64_t lines : {1, 3, 16, 35}) {
    for (const int64_t n : {10, 15, 64}) {
      const Layout dense{1, n}, across{lines, 1}, apart{3, 3 * n + 1};
      for (const Layout& from : {dense, across, apart}) {
        for (const Layout& to : {dense, across, apart}) {
          const int64_t half = n / 2 + 1;
          expect_transform<float>(Kind::ComplexToComplex, true, n, lines, from, to, n);
          expect_transform<double>(Kind::ComplexToComplex, false, n, lines, from, to, n);
          expect_transform<float>(Kind::RealToComplex, true, n, lines, from, to, half);
          expect_transform<float>(Kind::ComplexToReal, false, n, lines, from, to, n);
        }
      }
    }
  }
}

TEST_P(Fft_, OfRealsMayKeepAllNumbers) {
  for (const int64_t n : {1, 2, 9, 20, 100}) {
    const Layout whole{1, n};
    expect_transform<float>(Kind::RealToComplex, true, n, 17, whole, whole, n);
  }
}

TEST_P(Fft_, MayTransformInPlace) {
  constexpr int64_t n = 60, lines = 21;
  for (const Layout& layout : {Layout{1, n}, Layout{lines, 1}}) {
    std::vector<float> x = normal_floats(2 * n * lines), y(x.size());
    const Fft::Dim dim{lines, layout.apart, layout.apart};
    Fft fft;
    fft.n = fft.kept = n;
    fft.from = x.data();
    fft.to = y.data();
    fft.from_step = fft.to_step = layout.step;
    fft.dims = &dim;
    fft.n_dims = 1;
    run(fft);
    fft.to = x.data();
    run(fft);
    EXPECT_EQ(x, y);
  }
}

TEST_P(Fft_, IsRefusedMemoryAndSizesThatNobodyCounts) {
  std::vector<float> x(2 * 8192);
  const Fft::Dim one{1, 1, 1}, many{int64_t{1} << 40, 1, 1};
  for (const int64_t n : {64, 101, 8192}) {
    expect_refusal(
        Fft{Kind::ComplexToComplex, false, true, n, n, 1, x.data(), x.data(), 1, 1, &one, 1});
  }
  HeapScratch scratch(0);
  EXPECT_FALSE((Fft{Kind::ComplexToComplex, false, true, kTwo31, kTwo31, 1, x.data(), x.data(), 1,
                    1, &many, 1}
                    .run(scratch)));
}

}  // namespace
}  // namespace executorch::cpu
