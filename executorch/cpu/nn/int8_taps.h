/// Internal: the positions of an image that the outputs of a convolution read. Needs an axis for
/// which has_positions() (conv_sparse.h) is true.
#pragma once

#include <executorch/cpu/nn/conv.h>

#include <cstdint>

namespace executorch::cpu {

/// The positions that outputs read along an axis: tap t of output o reads o * step + base + t *
/// tap. `up` of these units make one pixel of the image (the stride of a transposed convolution).
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

  /// The number of units that the taps of n outputs span.
  int64_t extent(int64_t n) const { return (n - 1) * step + (kernel - 1) * tap + 1; }
  bool inside() const { return up == 1 && base >= 0 && base + extent(out) <= in; }
  /// The pixel of the image at unit `at`; -1 if there is none.
  int64_t position(int64_t at) const {
    return at >= 0 && at % up == 0 && at / up < in ? at / up : -1;
  }
};

}  // namespace executorch::cpu
