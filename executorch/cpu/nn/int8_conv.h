/// Convolutions of 8-bit images whose channels lie side by side, [batch,
/// height, width, channels].
#pragma once

#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/nn/conv.h>

#include <cstddef>
#include <vector>

namespace executorch::cpu {

/// What is computed from a filter once, and kept: it is as large as the filter.
class Int8Filter {
 public:
  bool empty() const { return data_.empty(); }
  const uint8_t* data() const { return data_.data() + start_; }

 private:
  friend struct Int8Conv;
  uint8_t* resize(int64_t bytes);
  std::vector<uint8_t> data_;
  size_t start_ = 0;  // on a cache line's boundary
};

/// out[b, y, x, g, o] = sum over taps t and i of
///     real(input[b, position(y, t), position(x, t), g, i]) * real(filter[g, o,
///     t, i]) + bias
/// as Int8Gemm gives it; what lies outside stands for 0.
///   product   everything about results, and the filter, row o of group g: n =
///   group_out, k = taps *
///             group_in, of all groups: b.data, b.scales, sums, biases have
///             groups * n entries. a is the input; rows[b / (batch /
///             rows_share)] its quantization, rows_share images each; ldc =
///             groups * n; m is not used
///   axis      height and width: in, kernel, out, stride, padding, dilation
///   depthwise the filter is [taps, channels] instead; group_in = group_out = 1
/// Sizes >= 1. Cannot fail. Sums are exact, results do not depend on the number
/// of threads.
///
/// Rows of the image are used where they lie, or copied once with their
/// padding; kernels read windows from there, never patches.
struct Int8Conv {
  Int8Gemm product;
  ConvAxis axis[2];
  bool transposed = false, depthwise = false;
  int64_t batch = 1, groups = 1, group_in = 1, group_out = 1;

  /// Makes the filter that run() reads, with the kernels in use.
  void pack(Int8Filter& filter) const;
  void run(const Int8Filter& filter) const;

 private:
  void pack_depthwise(Int8Filter& filter) const;
  void run_depthwise(const Int8Filter& filter) const;
};

}  // namespace executorch::cpu
