/// Products of 8-bit activations with 8-bit or 4-bit weights. Sums of 32-bit integers are exact and
/// are scaled once (weights with scales in groups: once per group). Weights are read as they are
/// stored and need not be prepacked.
#pragma once

#include <executorch/cpu/nn/quantize.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>
#include <limits>

namespace executorch::cpu {

/// The weights of n output channels, a row of k elements for each. Nothing is owned.
struct Int8Weights {
  const uint8_t* data = nullptr;  // int8, or if `nibbles`: element p of a row is 4 bits less 8,
  int64_t row_bytes = 0;          // low bits of byte p / 2 if p is even, high bits if odd
  bool nibbles = false;
  /// Element p of row j means q * scales[j], or if `group_scales` is set
  /// q * group_scales[j * ceil(k / group_size) + p / group_size]. Groups are for nibbles only;
  /// group_size is then a multiple of 32.
  const float* scales = nullptr;
  const BF16* group_scales = nullptr;
  int64_t group_size = 0;
};

/// Computes the sum of each of the n rows of weights: sums[j] = sum_p q[j,p], or for weights in
/// groups group_sums[j] = sum_p q[j,p] * scale. Reads all weights, so call it once. Returns false
/// if memory is refused.
[[nodiscard]] bool sum_rows(const Int8Weights& weights, int64_t n, int64_t k, int32_t* sums,
                            float* group_sums, Scratch& scratch);

/// c[i,j] = clamp(sum_p real(a[i,p]) * real(b[j,p]) + bias, low, high)
///   a        int8, m rows `lda` apart
///   rows     the quantization of row i of `a` is rows[i / rows_share]
///   bias     float[n] or null
///   c        m rows `ldc` elements apart: F32, F16, BF16, or int8 or uint8 quantized by
///            c_quantization, rounded to nearest even and clamped to their range. If c is int8 or
///            uint8, all rows of `a` have the quantization *rows, weights are bytes, and the bias
///            is integer_bias, int32[n] of scale rows->scale * b.scales[j], or null.
/// Sizes >= 0. run() returns false, before anything is written, if memory is refused or the number
/// of multiply-adds exceeds int64. The sums of one scale are exact up to k = 65,000
/// and equal on every machine; no result depends on the number of threads.
/// Cost: 2*m*n*k operations. For few rows of `a`, b is read once, where it lies. For more rows, b
/// is packed for the machine's multiply-add, a panel of columns at a time.
struct Int8Gemm {
  int64_t m = 0, n = 0, k = 0;
  const int8_t* a = nullptr;
  int64_t lda = 0;
  /// Whether the elements of `a`, and the zero points of its rows, are uint8.
  bool unsigned_a = false;
  const RowQuantization* rows = nullptr;
  int64_t rows_share = 1;
  Int8Weights b;
  /// From sum_rows(): `sums` for weights with b.scales, `group_sums` for those with b.group_scales.
  const int32_t* sums = nullptr;
  const float* group_sums = nullptr;
  const float* bias = nullptr;
  const int32_t* integer_bias = nullptr;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  enum class Out : uint8_t { F32, F16, BF16, Int8, UInt8 } out = Out::F32;
  void* c = nullptr;
  int64_t ldc = 0;
  RowQuantization c_quantization = {1, 0};

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
