/// How a discrete Fourier transform of a length is computed: its factors and its roots of unity.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace executorch::cpu {

/// The roots of unity exp(-2 pi sqrt(-1) k / n), each as (real part, imaginary part): every
/// `step`-th of a table.
template <class T>
struct Roots {
  const T* data;
  int64_t n, step;

  const T* at(int64_t k) const { return data + 2 * k * step; }
  /// Those of a divisor of n.
  Roots of(int64_t divisor) const { return {data, divisor, n / divisor * step}; }
};

/// Fills a table of 2 n parts.
template <class T>
void fill_roots(int64_t n, T* table);

/// The factor of n that the next pass takes, the smallest prime factor unless that is 2: eights,
/// then fours.
int64_t next_factor(int64_t n);
int64_t largest_prime_factor(int64_t n);

/// The largest prime factor without Bluestein's method, which is faster from about here on.
constexpr int64_t kLargestFactor = 100;
/// Longer lines are cut into matrices, so that what is transformed side by side stays in caches.
constexpr int64_t kLongLine = 4096;

/// The divisor c of n for which n is transformed as a matrix of n / c rows and c columns, `lanes`
/// columns or rows at a time; `cost` is how many vectors of numbers that are in all.
struct Cut {
  int64_t columns = 1, cost = 0;
  Cut(int64_t n, int64_t lanes);
};

/// Bluestein's method for a transform of n numbers. As i k is (i^2 + k^2 - (k - i)^2) / 2, and with
/// w_i = exp(-+ pi sqrt(-1) i^2 / n),
///   X[k] = w_k sum_i (x[i] w_i) conj(w)[k - i]
/// which is a convolution, and a product of transforms of m >= 2 n - 1 numbers. Numbers are pairs.
template <class T>
struct Chirp {
  int64_t n = 0, m = 0;
  T *chirp = nullptr, *kernel = nullptr;  // w and the transform of conj(w) / m: 2 n and 2 m parts
  Roots<T> roots{};                       // of m

  /// Fills the chirp and what the kernel is the transform of. False if memory is refused.
  bool prepare(int64_t length, bool forward, Scratch& scratch);
  /// to[i] = x[i] w_i for i < n, and 0 up to m.
  void spread(const T* x, T* to) const;
  /// Multiplies m numbers by the kernel.
  void filter(T* x) const;
  /// to[i] = x[i] w_i.
  void gather(const T* x, T* to) const;
};

}  // namespace executorch::cpu
