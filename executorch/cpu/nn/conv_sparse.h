/// Convolutions whose taps lie mostly outside of the image, because paddings, dilations or strides
/// are out of proportion to the image.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether the extents of the axis, and all positions that its taps read, are far from the limits
/// of int64. The functions below and all other algorithms rely on that.
bool has_positions(const ConvAxis& axis, bool transposed);

/// Removes from `c` the taps that read no element of the image for any output, and the part of the
/// image before the first tap. Returns false if no tap is left.
template <class T>
bool leave_out_idle_taps(Conv<T>& c);

/// The properties of a convolution that decide which algorithm suits it.
struct ConvExtents {
  const ConvAxis* axis;
  int n_axes;
  bool transposed;
  int64_t batch, groups, group_in, group_out;
  bool by_inputs = false;  // whether the algorithm would be that of conv_transposed.h
};
/// Whether algorithms that visit every tap of every output, or copy the image with its padding,
/// would need work or memory far out of proportion to the elements of the operands.
bool is_sparse(const ConvExtents& extents);

/// A tap that reads elements of the image in some steps, and these steps (ConvAxis::valid_steps).
struct ValidTap {
  int64_t k;
  ConvAxis::Steps steps;
};
/// Writes the valid taps of an axis to `taps`, in order, and returns their number. `taps` must
/// have room for axis.kernel entries.
int64_t list_valid_taps(const ConvAxis& axis, bool transposed, ValidTap* taps);

/// Computes `c` by visiting only the elements of the image that each tap reads. Needs scratch
/// memory for the sums of a plane for each thread. Cost: a few operations for each such element.
/// Returns false if the memory is refused.
template <class T>
[[nodiscard]] bool run_sparse(const Conv<T>& c, Scratch& scratch);

}  // namespace executorch::cpu
