/// Quantization of floats to 8-bit integers, dequantization, and functions of 8-bit integers, over
/// arrays. Any alignment; n >= 0. Everything runs on the calling thread. Results are equal on every
/// machine.
#pragma once

#include <cstdint>
#include <limits>

namespace executorch::cpu {

/// What the integers of a row mean: real = (q - zero_point) * scale.
struct RowQuantization {
  float scale;
  int32_t zero_point;
};

/// q[i] = round(x[i] / scale) + zero_point, i < n. Scale and zero point, which are returned, map
/// [min(x, 0), max(x, 0)] to the whole range of int8. They are chosen, and results rounded, as in
/// PyTorch.
RowQuantization quantize_row(const float* x, int64_t n, int8_t* q);

/// What 8-bit integers mean: real = (q - zero_point) * scale.
struct Int8Format {
  float scale = 1;
  int32_t zero_point = 0;
  bool is_unsigned = false;
};

/// Convert n elements. quantize() rounds to nearest even and clamps to the range of the format; a
/// NaN becomes the least integer.
void dequantize(const void* q, int64_t n, const Int8Format& format, float* x);
void quantize(const float* x, int64_t n, const Int8Format& format, void* q);

/// y[i] = quantize(clamp(real(a[i]) op real(b[i]), low, high)), i < n. a and b are both signed or
/// both unsigned. y may be a or b.
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

/// y[i] = max over r < n_rows of rows[r][i], clamped to [low, high], i < n; `low` if there is no
/// row. All rows and y have the same format.
struct Int8Maximum {
  const void* const* rows = nullptr;
  int64_t n_rows = 0, n = 0;
  bool is_unsigned = false;
  uint8_t low = 0x80, high = 0x7F;
  void* y = nullptr;

  void run() const;
};

}  // namespace executorch::cpu
