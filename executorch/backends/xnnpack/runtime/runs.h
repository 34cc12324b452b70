/// Reads and writes the elements of a value as floats, a run of elements at a time. float32
/// elements are used where they are, without a copy.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>

namespace executorch::backends::xnnpack {

/// The largest number of elements in a run.
constexpr int64_t kRun = 1024;

/// Elements [first, first + n) of the value: fp32, fp16, bf16, qint8 or quint8; in `room` (n
/// floats) unless they are fp32.
const float* read_run(const Value& value, int64_t first, int64_t n, float* room);

/// Returns the address to compute elements [first, first + n) at: in the value, or in `room`, from
/// where write_run() then stores them.
float* place_of_run(const Value& value, int64_t first, float* room);
/// Quantized values are rounded to nearest even and held within their type's range.
void write_run(const Value& value, int64_t first, int64_t n, const float* run);

/// Whether read_run() and write_run() take the type.
inline bool has_runs(Type type) {
  return is_float(type) || is_affine(type);
}

/// Scale, zero point and range of a quantized value, as the engine takes them.
cpu::Int8Format format_of(const Value& value);
/// The quantized integer nearest to x.
int32_t quantize(float x, const Value& value);

/// The engine's type; `type` is a floating one.
cpu::Type engine_type(Type type);

/// Holds results within [low, high]; NaN stays NaN.
void clamp_run(float* run, int64_t n, float low, float high);

}  // namespace executorch::backends::xnnpack
