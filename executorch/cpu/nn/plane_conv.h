/// What the ways of convolving planes have in common (conv_planes.h): how pixels are divided into
/// blocks, the padded image by rows, and products of weights and rows of pixels.
#pragma once

#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/scratch.h>

#include <algorithm>
#include <cstdint>

namespace executorch::cpu {

/// Pixels in blocks of at most three vectors of nearly equal width; a few more than whole vectors
/// are summed by themselves in the last block.
struct PlaneColumns {
  int64_t n, lanes, n_dots, n_vectors, n_blocks;

  PlaneColumns(int64_t pixels, const PlaneKernels& kernels, bool takes_dots = true);
  int64_t first(int64_t block) const { return block * n_vectors / n_blocks * lanes; }
  int64_t width(int64_t block) const {
    return std::min(first(block + 1), n - n_dots) - first(block);
  }
  int64_t dots(int64_t block) const { return block + 1 == n_blocks ? n_dots : 0; }
};

/// The padded image: of every row the columns with remainder 0 modulo the stride, then 1.
struct PlaneRows {
  int64_t count, phases, width, size;  // rows; parts of a row; columns of a part; floats of a row
  float* data;                         // null where memory is refused
};

/// One group of one image of a batch.
struct PlaneConv {
  PlaneConv(const Conv<float>& conv, int64_t b, int64_t g, Scratch& memory);

  /// Room for a row of partial sums and for a row of a panel: three vectors and further pixels.
  static constexpr int64_t kPartialColumns = 64;
  /// Multiply-adds that are worth another thread.
  static constexpr int64_t kGrainWork = 1 << 16;

  /// The weights of an output channel: (channel, tap) or (tap, channel).
  static bool by_channels(const Conv<float>& c);
  static bool by_taps(const Conv<float>& c);

  int64_t work() const { return whole.m * whole.k * c.pixels(); }
  /// Channels [i0, i0 + ni) of the pixels from `pixel` on, as far as that decides.
  PlaneProduct part(int64_t i0, int64_t ni, int64_t pixel) const;
  /// A deep product in parts of the sum; `partial` has partial_floats(p.m).
  void multiply(const PlaneProduct& p, float* partial) const;
  Size partial_floats(int64_t m) const;

  /// Memory for `count` rows of `columns` in each of `phases` parts; split_image() fills it.
  PlaneRows rows_of(int64_t count, int64_t phases, int64_t columns) const;
  void split_image(const PlaneRows& rows) const;

  const Conv<float>& c;
  Scratch& scratch;
  const ConvAxis &h, &w;
  const PlaneKernels& kernels;
  const float* image;
  PlaneProduct whole;              // all channels
  int64_t channel_step, tap_step;  // along the summed dim

 private:
  void split_row(int64_t y, const float* channel, const PlaneRows& rows, float* to) const;
};

}  // namespace executorch::cpu
