/// Shared by the algorithms that convolve planes (conv_planes.h): the division of pixels into
/// blocks, the padded image, and products of weights with rows of pixels.
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/scratch.h>

#include <algorithm>
#include <cstdint>

namespace executorch::cpu {

/// Divides pixels into blocks of nearly equal width, at most three vectors each. If few pixels are
/// left over from whole vectors, they are the tail of the last block (PlaneProduct::tail).
struct PlaneColumns {
  int64_t n, lanes, n_tail, n_vectors, n_blocks;

  PlaneColumns(int64_t pixels, const PlaneKernels& kernels, bool has_tail = true);
  int64_t first(int64_t block) const { return block * n_vectors / n_blocks * lanes; }
  int64_t width(int64_t block) const {
    return std::min(first(block + 1), n - n_tail) - first(block);
  }
  int64_t tail(int64_t block) const { return block + 1 == n_blocks ? n_tail : 0; }
};

/// The padded image: for each channel `depth` planes of `height` rows. Each row is stored in parts:
/// first the columns with remainder 0 modulo the stride, then those with remainder 1, and so on.
struct PlaneRows {
  int64_t depth, height, phases, width;  // planes; rows; parts of a row; columns of a part
  int64_t size;                          // floats of a row
  float* data;                           // null where memory is refused
};

/// One group of one image of a batch.
struct PlaneConv {
  PlaneConv(const Conv<float>& conv, int64_t b, int64_t g, Scratch& memory);

  /// Room for a row of partial sums and for a row of a panel: three vectors and further pixels.
  static constexpr int64_t kPartialColumns = 64;
  /// Multiply-adds that are worth another thread.
  static constexpr int64_t kGrainWork = 1 << 16;

  /// Whether the weights of an output channel are contiguous in the order (channel, tap), or in the
  /// order (tap, channel).
  static bool by_channels(const Conv<float>& c);
  static bool by_taps(const Conv<float>& c);

  int64_t work() const { return whole.m * whole.k * c.pixels(); }
  /// The product for channels [i0, i0 + ni) of the pixels from `pixel` on; the caller sets the
  /// other fields.
  PlaneProduct part(int64_t i0, int64_t ni, int64_t pixel) const;
  /// Computes p, in parts of the sum if k is large. `partial` has partial_floats(p.m) floats.
  void multiply(const PlaneProduct& p, float* partial) const;
  Size partial_floats(int64_t m) const;

  /// Takes memory for the rows, of `phases` parts of at least `columns` columns, which
  /// split_image() fills.
  PlaneRows rows_of(int64_t depth, int64_t height, int64_t phases, int64_t columns) const;
  void split_image(const PlaneRows& rows) const;

  const Conv<float>& c;
  Scratch& scratch;
  const ConvAxis &z, &h, &w;
  const PlaneKernels& kernels;
  const float* image;
  PlaneProduct whole;              // the product for all channels
  int64_t channel_step, tap_step;  // distances along k of neighbouring channels and taps

 private:
  void split_row(int64_t y, const float* channel, const PlaneRows& rows, float* to) const;
};

}  // namespace executorch::cpu
