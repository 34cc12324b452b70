/// Convolutions of 8-bit images whose channels lie side by side, [batch, height, width, channels].
#pragma once

#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/nn/conv.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace executorch::cpu {

/// What is computed from a filter once, and kept: it is as large as the filter, or a small multiple
/// of it. Nothing where that would be a large one: then run() reads the filter itself.
class Int8Filter {
 public:
  const uint8_t* data() const { return data_.get(); }

 private:
  friend struct Int8Conv;
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };
  /// False if there is no memory.
  bool resize(Size bytes);
  std::unique_ptr<uint8_t, Free> data_;  // on a cache line's boundary
  bool made_ = false;
};

/// out[b, y, x, g, o] = sum over taps t and i of
///     real(input[b, position(y, t), position(x, t), g, i]) * real(filter[g, o, t, i]) + bias
/// as Int8Gemm gives it; what lies outside stands for 0.
///   product      the results, and the filter as a matrix B: n = group_out, k = taps * group_in.
///                b.data, b.scales, sums and biases have groups * n entries, one per row o of group
///                g. `a` is the input, rows[b / rows_share] the quantization of image b, which
///                rows_share images share; ldc = groups * n; m is not used
///   filter_step  elements between neighbours of a row of the filter, rows being
///                product.b.row_bytes apart: 1, or the number of rows for a transposed filter
///   axis         height and width: in, kernel, out, stride, padding, dilation
/// Sizes >= 1. Sums are exact, results do not depend on the number of threads.
///
/// Rows of the image are used where they lie, or copied once with their padding; kernels read
/// windows from there, never patches. One channel per group is summed by vectors of channels.
/// What lies beyond the image is not there, as for Conv.
struct Int8Conv {
  Int8Gemm product;
  int64_t filter_step = 1;
  ConvAxis axis[2];
  bool transposed = false;
  int64_t batch = 1, groups = 1, group_in = 1, group_out = 1;

  /// Makes the filter that run() reads, with the kernels in use; depends on the filter and the
  /// strides, not on the image. False if there is no memory.
  [[nodiscard]] bool pack(Int8Filter& filter) const;
  /// False: `scratch` was refused, or sizes that are not positive or leave the range of int64.
  [[nodiscard]] bool run(const Int8Filter& filter, Scratch& scratch) const;

 private:
  bool is_depthwise() const;
  bool has_sizes() const;
  [[nodiscard]] bool pack_panels(Int8Filter& filter) const;
  [[nodiscard]] bool pack_depthwise(Int8Filter& filter) const;
  [[nodiscard]] bool run_depthwise(const Int8Filter& filter, Scratch& scratch) const;
  [[nodiscard]] bool run_sparse(Scratch& scratch) const;
  Int8Gemm of_group(int64_t group) const;
};

}  // namespace executorch::cpu
