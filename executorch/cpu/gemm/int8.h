/// Products of 8-bit activations with 8-bit or 4-bit weights, summed exactly in 32-bit integers and
/// scaled once. Weights are read as they are stored; nothing has to be prepacked.
#pragma once

#include <executorch/cpu/nn/quantize.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>
#include <limits>

namespace executorch::cpu {

/// The weights of n output channels, one row of k each. Borrowed.
struct Int8Weights {
  const uint8_t* data = nullptr;  // int8, or if `nibbles`: element p of a row is 4 bits less 8,
  int64_t row_bytes = 0;          // low bits of byte p / 2 if p is even, high bits if odd
  bool nibbles = false;
  /// real = q * scales[j], or q * group_scales[j * ceil(k / group_size) + p /
  /// group_size] (group_size a multiple of 32; nibbles only).
  const float* scales = nullptr;
  const BF16* group_scales = nullptr;
  int64_t group_size = 0;
};

/// sums[j] = sum_p of row j; for groups group_sums[j], the same of q * scale.
/// Reads all weights, so do it once. False if memory is refused.
[[nodiscard]] bool sum_rows(const Int8Weights& weights, int64_t n, int64_t k, int32_t* sums,
                            float* group_sums, Scratch& scratch);

/// c[i,j] = clamp(sum_p real(a[i,p]) * real(b[j,p]) + bias, low, high)
///   a        int8, m rows `lda` apart
///   rows     row i means rows[i / rows_share]
///   bias     float[n] or null
///   c        m rows `ldc` elements apart: F32, F16, BF16, or int8 or uint8 that mean
///            c_quantization, rounded to nearest even and held within their range. For bytes all
///            rows mean *rows, weights are bytes, and the bias is integer_bias, int32[n] of scale
///            rows->scale * b.scales[j], or null.
/// Sizes >= 0. False if memory is refused, or the multiply-adds are more than an int64 counts,
/// before anything is written. The sums of one scale are exact up to k = 65,000
/// and equal on every machine; no result depends on the number of threads.
/// Cost: 2*m*n*k operations. Up to a few rows, b is read once, straight from
/// memory; more rows repay arranging it for the machine's multiply-add, a panel
/// of columns at a time.
struct Int8Gemm {
  int64_t m = 0, n = 0, k = 0;
  const int8_t* a = nullptr;
  int64_t lda = 0;
  /// `a` is uint8, and so are zero points.
  bool unsigned_a = false;
  const RowQuantization* rows = nullptr;
  int64_t rows_share = 1;
  Int8Weights b;
  /// From sum_rows(); the one that goes with the scales.
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
