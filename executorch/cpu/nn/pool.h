/// Pooling over windows of the last two dims of images, either layout.
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
  /// Windows [whole_begin, whole_end) have one count and lie `stride` apart; 0 where that varies.
  int64_t stride = 0, whole_begin = 0, whole_end = 0;
  const int32_t* begin = nullptr;
  const int32_t* count = nullptr;
  /// Average: what a window's sum is divided by is the product of both axes'.
  const float* divisor = nullptr;
};

/// y[n,c,oh,ow] = max or average of x[n,c,h,w] over a window. x and y dense, [n,c,h,w] or
/// [n,h,w,c]; sums in float. Max: the last NaN if there is one, else the first maximum; `index` (as
/// y; may be null) gets its position h * in_w + w. in_h * in_w < 2^31. Threads share the work;
/// results do not depend on their number. Sizes >= 0. False if memory is refused, or the sizes are
/// more than an int64 counts, before anything is written.
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
