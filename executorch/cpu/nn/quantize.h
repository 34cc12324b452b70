/// Between floats and 8-bit integers, and functions of 8-bit integers, over arrays: any alignment,
/// n >= 0, on the calling thread. Results are equal on every machine.
#pragma once

#include <cstdint>
#include <limits>

namespace executorch::cpu {

/// What the integers of a row mean: real = (q - zero_point) * scale.
struct RowQuantization {
  float scale;
  int32_t zero_point;
};

/// q[i] = round(x[i] / scale) + zero_point, i < n, with [min(x, 0), max(x, 0)]
/// over all of int8, as PyTorch chooses and rounds.
RowQuantization quantize_row(const float* x, int64_t n, int8_t* q);

/// What 8-bit integers mean: real = (q - zero_point) * scale.
struct Int8Format {
  float scale = 1;
  int32_t zero_point = 0;
  bool is_unsigned = false;
};

/// Integers are rounded to nearest even and held within their range; a NaN
/// becomes the least.
void dequantize(const void* q, int64_t n, const Int8Format& format, float* x);
void quantize(const float* x, int64_t n, const Int8Format& format, void* q);

/// y[i] = clamp(real(a[i]) op real(b[i]), low, high), i < n, quantized; a and b
/// both signed or both unsigned. y may be a or b.
struct Int8Binary {
  enum class Op : uint8_t { Add, Subtract, Multiply } op = Op::Add;
  int64_t n = 0;
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  Int8Format a_format, b_format, y_format;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  void run() const;
};

/// y[i] = the largest of rows[r][i], r < n_rows, i < n, held within [low, high]; low if there is no
/// row. Bytes of one format.
struct Int8Maximum {
  const void* const* rows = nullptr;
  int64_t n_rows = 0, n = 0;
  bool is_unsigned = false;
  uint8_t low = 0x80, high = 0x7F;
  void* y = nullptr;

  void run() const;
};

}  // namespace executorch::cpu
