/// Rotary position embedding of rows whose halves are rotated together.
#pragma once

#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// Rotates elements i and half + i of a row of 2 * half elements, i < half, by angles whose cosines
/// and sines are given as tables:
///   out[i]        = x[i]        * cos[i]        - x[half + i] * sin[i]
///   out[half + i] = x[half + i] * cos[half + i] + x[i]        * sin[half + i]
/// computed in float. All arrays have the type `type` and are contiguous; out must not overlap x.
void rotate_halves(Type type, const void* x, const void* cos, const void* sin, int64_t half,
                   void* out);

}  // namespace executorch::cpu
