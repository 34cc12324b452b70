/// Which positions of an image a convolution's outputs read, for positions that has_positions()
/// (conv_sparse.h). Of the implementation.
#pragma once

#include <executorch/cpu/nn/conv.h>

#include <cstdint>

namespace executorch::cpu {

/// Where outputs read along an axis: output o with tap t at o * step + base + t * tap, in steps of
/// which `up` are one of the image.
struct AxisTaps {
  int64_t in, out, kernel, step, base, tap, up;

  AxisTaps(const ConvAxis& a, bool transposed)
      : in(a.in),
        out(a.out),
        kernel(a.kernel),
        step(transposed ? 1 : a.stride),
        base(transposed ? a.padding - (a.kernel - 1) * a.dilation : -a.padding),
        tap(a.dilation),
        up(transposed ? a.stride : 1) {}

  /// Steps that n outputs reach over.
  int64_t extent(int64_t n) const { return (n - 1) * step + (kernel - 1) * tap + 1; }
  bool inside() const { return up == 1 && base >= 0 && base + extent(out) <= in; }
  /// The position in the image that is read at `step` of an output; -1: none.
  int64_t position(int64_t at) const {
    return at >= 0 && at % up == 0 && at / up < in ? at / up : -1;
  }
};

}  // namespace executorch::cpu
