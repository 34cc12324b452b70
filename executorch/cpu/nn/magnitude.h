/// Absolute values of complex numbers.
#pragma once

#include <cstdint>

namespace executorch::cpu {

/// y[i] = sqrt(x[2 i]^2 + x[2 i + 1]^2) for i < n, as hypotf() gives it: infinite if a part is,
/// even if the other is NaN; finite wherever float holds the result, which is rounded from double.
/// Threads share the work. y must not overlap x.
void magnitudes(const float* x, float* y, int64_t n);

}  // namespace executorch::cpu
