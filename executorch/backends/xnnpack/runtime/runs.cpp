#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/nn/elementwise.h>

namespace executorch::backends::xnnpack {
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
    default:
      cpu::dequantize(value.as<uint8_t>() + first, n, format_of(value), room);
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
    default:
      cpu::quantize(run, n, format_of(value), value.as<uint8_t>() + first);
      break;
  }
}

int32_t quantize(float x, const Value& value) {
  uint8_t byte;
  cpu::quantize(&x, 1, format_of(value), &byte);
  return value.type == Type::qint8 ? static_cast<int8_t>(byte) : byte;
}

cpu::Int8Format format_of(const Value& value) {
  return {value.scale, value.zero_point, value.type == Type::quint8};
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
