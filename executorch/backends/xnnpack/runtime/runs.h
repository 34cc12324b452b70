/// Elements of a value of any type as floats, a run at a time: where they lie if they are floats.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>

namespace executorch::backends::xnnpack {

/// Elements that a run may have.
constexpr int64_t kRun = 1024;

/// Elements [first, first + n) of the value: fp32, fp16, bf16, qint8 or quint8; in `room` (n
/// floats) unless they are fp32.
const float* read_run(const Value& value, int64_t first, int64_t n, float* room);

/// Where to compute elements [first, first + n); write_run() afterwards stores what is in `room`.
float* place_of_run(const Value& value, int64_t first, float* room);
/// Quantized values are rounded to nearest even and held within their type's range.
void write_run(const Value& value, int64_t first, int64_t n, const float* run);

/// The type has runs.
inline bool has_runs(Type type) {
  return is_float(type) || is_affine(type);
}

/// What a quantized value's integers mean.
cpu::Int8Format format_of(const Value& value);
/// The nearest integer that stands for x.
int32_t quantize(float x, const Value& value);

/// The engine's type; `type` is a floating one.
cpu::Type engine_type(Type type);

/// Holds results within [low, high]; NaN stays NaN.
void clamp_run(float* run, int64_t n, float low, float high);

}  // namespace executorch::backends::xnnpack
