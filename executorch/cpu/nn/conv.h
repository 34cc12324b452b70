/// Convolution in up to three dimensions. Operands are read where they lie, with any strides.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/cpu/scratch.h>
#include <executorch/cpu/types.h>

#include <algorithm>
#include <cstdint>

namespace executorch::cpu {

/// One spatial dim; strides in elements, any layout.
struct ConvAxis {
  int64_t in = 1, kernel = 1, out = 1;
  int64_t stride = 1, padding = 0, dilation = 1;
  int64_t in_stride = 0, weight_stride = 0, out_stride = 0;

  /// The input position that tap `k` of output `o` reads; -1 if it lies outside the input or, in a
  /// transposed convolution, between strides.
  int64_t position(int64_t o, int64_t k, bool transposed) const {
    int64_t at = transposed ? o + padding - k * dilation : o * stride - padding + k * dilation;
    if (transposed) {
      if (at < 0 || at % stride != 0) return -1;
      at /= stride;
    }
    return at >= 0 && at < in ? at : -1;
  }

  /// The outputs [begin, end) for which tap k reads an element inside the input: output i reads
  /// position i * stride + k * dilation - padding. In a transposed convolution, the inputs
  /// [begin, end) for which tap k contributes to an output.
  struct Steps {
    int64_t begin = 0, end = 0;
  };
  Steps valid_steps(int64_t k, bool transposed) const {
    const int64_t first = k * dilation - padding, inside = (transposed ? out : in) - first;
    Steps steps;
    if (first < 0) steps.begin = (-first - 1) / stride + 1;
    if (inside > 0) steps.end = std::min((inside - 1) / stride + 1, transposed ? in : out);
    steps.begin = std::min(steps.begin, steps.end);
    return steps;
  }
};

/// out[b, g, o, x] = act(sum over i, t of weight[g, o, i, t] * input[b, g, i, position(x, t)]
///                       + bias[g, o]) + residual[b, g, o, x], or
///                   act(... + residual[b, g, o, x]) if `act_last`
///   x, t     positions and taps in depth, height, width; dims that are absent have extent 1
///   T        float, F16, BF16, double, int8_t to int64_t, uint8_t; sums as in Gemm
///   bias     groups * group_out contiguous elements, or null
///   residual laid out as `out`, or null; may be `out` itself
/// out must not overlap another operand. Extents >= 0, stride and dilation >= 1, any padding. Taps
/// outside of the image are skipped, so work and memory are in proportion to the elements of the
/// operands, whatever the padding or dilation (conv_sparse.h). Results do not depend on the number
/// of threads.
///
/// Dense convolutions are matrix products whose patches are gathered panel by panel, never stored:
/// [o, (i, t)] x [(i, t), x] where pixels are contiguous (floats: conv_planes.h), [x, (t, i)] x
/// [(t, i), o] where channels are. Depthwise convolutions (one input channel per group) are
/// computed directly, for both layouts.
template <class T>
struct Conv {
  ConvAxis axis[3];
  bool transposed = false;
  int64_t batch = 1, groups = 1;
  int64_t group_in = 1, group_out = 1;  // channels per group
  const T* input = nullptr;
  int64_t in_batch = 0, in_channel = 0;
  const T* weight = nullptr;
  int64_t weight_group = 0, weight_out = 0, weight_in = 0;
  const T* bias = nullptr;
  T* out = nullptr;
  int64_t out_batch = 0, out_channel = 0;
  Activation act = {};  // floating types only
  const T* residual = nullptr;
  bool act_last = false;

  int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  int64_t pixels() const { return axis[0].out * axis[1].out * axis[2].out; }
  /// The offset of a tap's weight from that of tap 0.
  int64_t weight_tap(int64_t tap) const {
    const ConvAxis &z = axis[0], &h = axis[1], &w = axis[2];
    return tap / (w.kernel * h.kernel) * z.weight_stride +
           tap / w.kernel % h.kernel * h.weight_stride + tap % w.kernel * w.weight_stride;
  }

  /// Returns false if scratch memory is refused, or if positions or the work exceed int64.
  [[nodiscard]] bool run(Scratch& scratch) const;
};

}  // namespace executorch::cpu
