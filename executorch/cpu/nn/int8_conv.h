/// Convolutions of 8-bit images with contiguous channels, [batch, height, width, channels].
#pragma once

#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/nn/conv.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace executorch::cpu {

/// A prepacked filter, made once by Int8Conv::pack(). It is as large as the filter or a small
/// multiple of it. It is empty where it would be a large multiple; run() then reads the filter
/// itself.
class Int8Filter {
 public:
  const uint8_t* data() const { return data_.get(); }

 private:
  friend struct Int8Conv;
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  /// Allocates `bytes` bytes. Returns false if there is no memory.
  bool resize(Size bytes);
  std::unique_ptr<uint8_t, Free> data_;  // on a cache line's boundary
  /// A transposed convolution with strides has a filter for each phase (int8_transposed.cpp)
  /// instead: some taps, rows of groups * group_out, and the sums of these rows.
  struct Phase;
  std::unique_ptr<Phase[]> phases_;
  bool made_ = false;
};

struct Int8Filter::Phase {
  std::unique_ptr<uint8_t[]> rows;
  std::unique_ptr<int32_t[]> sums;
  Int8Filter filter;
};

/// out[b, y, x, g, o] = sum over taps t and i of
///     real(input[b, position(y, t), position(x, t), g, i]) * real(filter[g, o, t, i]) + bias
/// with results in the formats of Int8Gemm. Positions outside of the image mean 0.
///   product      the results, and the filter as a matrix B: n = group_out, k = taps * group_in.
///                b.data, b.scales, sums and biases have groups * n entries, one per row o of group
///                g. `a` is the input, rows[b / rows_share] the quantization of image b, which
///                rows_share images share; ldc = groups * n; m is not used
///   filter_step  distance in elements between neighbours in a row of the filter: 1, or the number
///                of rows for a transposed filter. Rows are product.b.row_bytes apart
///   axis         height and width: in, kernel, out, stride, padding, dilation
/// Sizes >= 1. Sums are exact, results do not depend on the number of threads.
///
/// Rows of the image are read where they lie, or copied once with their padding. Kernels read
/// windows from there; patches are never gathered. Depthwise convolutions are computed with vectors
/// of channels. Taps outside of the image are skipped where they would dominate the work, as in
/// Conv.
struct Int8Conv {
  Int8Gemm product;
  int64_t filter_step = 1;
  ConvAxis axis[2];
  bool transposed = false;
  int64_t batch = 1, groups = 1, group_in = 1, group_out = 1;

  /// Packs the filter for run(), for the microkernels in use. The result depends on the filter and
  /// the strides, not on the image. Returns false if there is no memory.
  [[nodiscard]] bool pack(Int8Filter& filter) const;
  /// Computes product.c. Returns false if scratch memory is refused, or if sizes are not positive
  /// or exceed int64.
  [[nodiscard]] bool run(const Int8Filter& filter, Scratch& scratch) const;

 private:
  bool is_depthwise() const;
  bool has_sizes() const;
  [[nodiscard]] bool pack_panels(Int8Filter& filter) const;
  [[nodiscard]] bool pack_depthwise(Int8Filter& filter) const;
  [[nodiscard]] bool run_depthwise(const Int8Filter& filter, Scratch& scratch) const;
  bool has_phases() const;
  Int8Conv of_phase(int64_t index, const Int8Filter::Phase& packed) const;
  [[nodiscard]] bool pack_phases(Int8Filter& filter) const;
  [[nodiscard]] bool run_phases(const Int8Filter& filter, Scratch& scratch) const;
  [[nodiscard]] bool run_sparse(Scratch& scratch) const;
  Int8Gemm of_group(int64_t group) const;
};

}  // namespace executorch::cpu
