/// Pooling over windows in the height and width of images, in either layout.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <cstdint>

namespace executorch::cpu {

/// The windows along one dim: output o covers positions begin[o] + t * dilation, t < count[o], all
/// within [0, in); count[o] >= 1.
struct PoolAxis {
  int64_t in = 1, out = 1;
  int64_t dilation = 1;
  /// Windows [whole_begin, whole_end) have equal counts and begin `stride` apart; 0 if the
  /// distances vary.
  int64_t stride = 0, whole_begin = 0, whole_end = 0;
  const int32_t* begin = nullptr;
  const int32_t* count = nullptr;
  /// For averages: the sum of a window is divided by the product of both axes' divisors.
  const float* divisor = nullptr;
};

/// y[n,c,oh,ow] = max or average of x[n,c,h,w] over a window. x and y dense, [n,c,h,w] or
/// [n,h,w,c]; sums are in float. Max gives the last NaN of a window, or else the first maximum;
/// `index`, which is laid out as y and may be null, receives its position h * in_w + w.
/// in_h * in_w < 2^31. Threads share the work; results do not depend on their number. Sizes >= 0.
/// run() returns false, before anything is written, if memory is refused or a product of sizes
/// exceeds int64.
struct Pool2d {
  Type type = Type::F32;
  bool max = false;
  bool channels_last = false;
  int64_t batch = 1, channels = 1;
  PoolAxis h, w;
  const void* x = nullptr;
  void* y = nullptr;
  int64_t* index = nullptr;

  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
