/// Functions of one element over arrays, and conversions between storage types.
/// x and y may be the same array, not overlap otherwise; any alignment; n >= 0. On the calling
/// thread.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// y[i] = act(x[i])
void apply(const Activation& act, const float* x, float* y, int64_t n);
/// y[i] = e^x[i]
void exp(const float* x, float* y, int64_t n);
/// y[i] = erf(x[i])
void erf(const float* x, float* y, int64_t n);
/// y[i] = ln x[i]; log2: to the base 2, exact of powers of 2
void log(const float* x, float* y, int64_t n);
void log2(const float* x, float* y, int64_t n);

/// y[i] = x[i]; to the 16-bit types rounded to nearest even.
void convert(const F16* x, float* y, int64_t n);
void convert(const BF16* x, float* y, int64_t n);
void convert(const float* x, F16* y, int64_t n);
void convert(const float* x, BF16* y, int64_t n);

}  // namespace executorch::cpu
