/// Discrete Fourier transforms of many lines of numbers.
#pragma once

#include <executorch/cpu/scratch.h>

#include <cstdint>

namespace executorch::cpu {

/// For each line:
///   X[k] = scale * sum_i x[i] exp(-+ 2 pi sqrt(-1) i k / n),  i < n, k < kept
/// with - for `forward`, which transforms of reals are, and transforms to reals are not. Complex
/// numbers are pairs of floats or doubles (real part, imaginary part); all strides are in elements
/// of their side. A transform to reals reads the n / 2 + 1 numbers of the first half of a line,
/// whose other half would mirror them, and takes the imaginary parts of its first and, for even n,
/// last number for 0.
///
/// The factors of n are transformed by Stockham's method, which sorts as it goes; real lines of
/// even length as complex ones of half the length. Where a prime factor is large, Bluestein's
/// method makes of the transform a convolution, whose length is a power of two. As many lines as a
/// vector has lanes are transformed side by side. A line that is long or has few others beside it
/// is cut into a matrix, whose columns and then rows are transformed side by side.
///
/// from and to may be the same memory with the same strides, otherwise they must not overlap. Sizes
/// and n must be >= 1, and 1 <= kept <= n. Threads share the work; results do not depend on their
/// number. run() returns false if memory is refused or a product of sizes exceeds int64.
/// Cost: 5 n log2(n) operations for each line of small factors. Scratch memory: two groups of
/// lines of up to kLongLine numbers for each thread, or three times a long line, or about twenty
/// times one of a large prime factor.
struct Fft {
  enum class Kind : uint8_t { ComplexToComplex, RealToComplex, ComplexToReal };
  struct Dim {
    int64_t size = 1, from = 0, to = 0;
  };

  Kind kind = Kind::ComplexToComplex;
  bool wide = false;  // the parts are doubles
  bool forward = true;
  int64_t n = 1, kept = 1;
  double scale = 1;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_step = 1, to_step = 1;  // along a line
  const Dim* dims = nullptr;           // in which the lines lie
  int n_dims = 0;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
