#include <executorch/cpu/nn/fft_plan.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace executorch::cpu {
namespace {

constexpr double kTau = 6.28318530717958647692;

struct Root {
  double re, im;
};
/// exp(-2 pi sqrt(-1) k / n).
Root root(int64_t k, int64_t n) {
  const double angle = kTau * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

/// to = a b.
template <class T>
void multiply(const T* a, const T* b, T* to) {
  const T re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
  to[0] = re;
  to[1] = im;
}

}  // namespace

template <class T>
void fill_roots(int64_t n, T* table) {
  const int64_t half = n / 2 + 1;  // the others are their conjugates
  if constexpr (std::is_same_v<T, float>) {
    // A product of two roots in double is as good as the root itself, and takes far less time.
    constexpr int64_t kFine = 32;
    Root fine[kFine];
    for (int64_t k = 0; k < std::min(half, kFine); ++k) fine[k] = root(k, n);
    for (int64_t k = 0; k < half; k += kFine) {
      const Root w = root(k, n);
      for (int64_t i = 0; i < std::min(half - k, kFine); ++i) {
        table[2 * (k + i)] = static_cast<float>(w.re * fine[i].re - w.im * fine[i].im);
        table[2 * (k + i) + 1] = static_cast<float>(w.re * fine[i].im + w.im * fine[i].re);
      }
    }
  } else {
    for (int64_t k = 0; k < half; ++k) {
      const Root w = root(k, n);
      table[2 * k] = w.re;
      table[2 * k + 1] = w.im;
    }
  }
  for (int64_t k = half; k < n; ++k) {
    table[2 * k] = table[2 * (n - k)];
    table[2 * k + 1] = -table[2 * (n - k) + 1];
  }
}
template void fill_roots(int64_t n, float* table);
template void fill_roots(int64_t n, double* table);

int64_t next_factor(int64_t n) {
  if (n % 8 == 0 && n % 32 != 16) return 8;  // two fours are better than an eight and a two
  if (n % 4 == 0) return 4;
  if (n % 2 == 0) return 2;
  for (int64_t p = 3; p * p <= n; p += 2) {
    if (n % p == 0) return p;
  }
  return n;
}

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p; n > 1; n /= p) {
    p = next_factor(n);
    largest = std::max(largest, p % 2 == 0 ? 2 : p);
  }
  return largest;
}

Cut::Cut(int64_t n, int64_t lanes) : cost(2 * n) {
  const auto vectors = [&](int64_t columns) { return (columns + lanes - 1) / lanes; };
  for (int64_t c = 2; c * c <= n; ++c) {
    const int64_t rows = n / c, of_both = vectors(c) * rows + vectors(rows) * c;
    if (n % c != 0 || of_both > cost) continue;
    columns = c;
    cost = of_both;
  }
}

template <class T>
bool Chirp<T>::prepare(int64_t length, bool forward, Scratch& scratch) {
  Size padded = 1;
  while (padded.ok() && padded.value() < 2 * length - 1) padded *= 2;
  n = length;
  chirp = scratch.array<T>(Size(n) * 2);
  kernel = scratch.array<T>(padded * 2);
  T* const table = scratch.array<T>(padded * 2);
  if (chirp == nullptr || kernel == nullptr || table == nullptr) return false;
  m = padded.value();
  fill_roots(m, table);
  roots = {table, m, 1};
  std::fill_n(kernel, 2 * m, T(0));
  const double part = 1.0 / static_cast<double>(m);
  for (int64_t i = 0, square = 0; i < n; ++i) {  // of i, modulo 2 n
    const Root w = root(square, 2 * n);
    const double im = forward ? w.im : -w.im;
    chirp[2 * i] = static_cast<T>(w.re);
    chirp[2 * i + 1] = static_cast<T>(im);
    for (const int64_t at : {i, i == 0 ? 0 : m - i}) {
      kernel[2 * at] = static_cast<T>(w.re * part);
      kernel[2 * at + 1] = static_cast<T>(-im * part);
    }
    square = (square + 2 * i + 1) % (2 * n);
  }
  return true;
}

template <class T>
void Chirp<T>::spread(const T* x, T* to) const {
  gather(x, to);
  std::fill(to + 2 * n, to + 2 * m, T(0));
}

template <class T>
void Chirp<T>::filter(T* x) const {
  for (int64_t i = 0; i < 2 * m; i += 2) multiply(x + i, kernel + i, x + i);
}

template <class T>
void Chirp<T>::gather(const T* x, T* to) const {
  for (int64_t i = 0; i < 2 * n; i += 2) multiply(x + i, chirp + i, to + i);
}

template struct Chirp<float>;
template struct Chirp<double>;

}  // namespace executorch::cpu
