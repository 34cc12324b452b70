#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/elementwise.h>

#include <algorithm>
#include <cmath>

namespace executorch::backends::xnnpack {
namespace {

template <class T>
void dequantise(const T* from, int64_t n, const Value& value, float* to) {
  const int32_t zero = value.zero_point;
  const float scale = value.scale;
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i] - zero) * scale;
}

/// Nearest even, for |x| < 2^22; a loop of these is vectorised, one of std::nearbyint perhaps not.
float round_even(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
  return (x + kRounder) - kRounder;
}

float quantised(float x, float inverse, float zero, float low, float high) {
  // Held before it is rounded: a NaN becomes `low`, and the conversion is defined for every float.
  const float y = x * inverse;
  const float bounded = y > low - zero ? y : low - zero;
  return round_even(bounded < high - zero ? bounded : high - zero) + zero;
}

template <class T>
void quantise_run(const float* from, int64_t n, const Value& value, T* to) {
  const float inverse = 1 / value.scale, zero = static_cast<float>(value.zero_point);
  const float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<T>(static_cast<int32_t>(quantised(from[i], inverse, zero, low, high)));
  }
}

}  // namespace

const float* read_run(const Value& value, int64_t first, int64_t n, float* room) {
  switch (value.type) {
    case Type::fp32:
      return value.as<float>() + first;
    case Type::fp16:
      cpu::convert(value.as<cpu::F16>() + first, room, n);
      break;
    case Type::bf16:
      cpu::convert(value.as<cpu::BF16>() + first, room, n);
      break;
    case Type::qint8:
      dequantise(value.as<int8_t>() + first, n, value, room);
      break;
    default:
      dequantise(value.as<uint8_t>() + first, n, value, room);
      break;
  }
  return room;
}

float* place_of_run(const Value& value, int64_t first, float* room) {
  return value.type == Type::fp32 ? value.as<float>() + first : room;
}

void write_run(const Value& value, int64_t first, int64_t n, const float* run) {
  switch (value.type) {
    case Type::fp32:
      break;
    case Type::fp16:
      cpu::convert(run, value.as<cpu::F16>() + first, n);
      break;
    case Type::bf16:
      cpu::convert(run, value.as<cpu::BF16>() + first, n);
      break;
    case Type::qint8:
      quantise_run(run, n, value, value.as<int8_t>() + first);
      break;
    default:
      quantise_run(run, n, value, value.as<uint8_t>() + first);
      break;
  }
}

int32_t quantise(float x, const Value& value) {
  const bool is_signed = value.type == Type::qint8;
  return static_cast<int32_t>(quantised(x, 1 / value.scale, static_cast<float>(value.zero_point),
                                        is_signed ? -128.0f : 0.0f, is_signed ? 127.0f : 255.0f));
}

cpu::Type engine_type(Type type) {
  return type == Type::fp32   ? cpu::Type::F32
         : type == Type::fp16 ? cpu::Type::F16
                              : cpu::Type::BF16;
}

void clamp_run(float* run, int64_t n, float low, float high) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = run[i] < low ? low : run[i];
    run[i] = x > high ? high : x;
  }
}

}  // namespace executorch::backends::xnnpack
