/// Convolutions that mostly visit what is not there: with paddings, dilations or strides out of
/// proportion to the image.
#pragma once

#include <executorch/cpu/nn/conv.h>

namespace executorch::cpu {

/// Whether the axis' extents, and all positions that it visits, are integers far from the limits of
/// int64. Everything below, and the other algorithms, rely on that.
bool has_positions(const ConvAxis& axis, bool transposed);

/// Leaves out taps that meet nothing of the image, and the part of the image before the first tap.
/// False: nothing is left to sum.
template <class T>
bool leave_out_idle_taps(Conv<T>& c);

/// What decides which algorithm suits a convolution.
struct ConvExtents {
  const ConvAxis* axis;
  int n_axes;
  bool transposed;
  int64_t batch, groups, group_in, group_out;
  bool in_phases = false;  // the algorithm is that of conv_transposed.h
};
/// Whether algorithms that visit every tap of every output, or copy the image with its padding,
/// would do so out of all proportion to what the operands hold.
bool is_sparse(const ConvExtents& extents);

/// A tap that meets something of the image, and in which steps.
struct MeetingTap {
  int64_t k;
  ConvAxis::Steps steps;
};
/// Those of an axis, in order; `taps` has room for its kernel. Returns how many there are.
int64_t list_meeting_taps(const ConvAxis& axis, bool transposed, MeetingTap* taps);

/// Visits the elements of the image that each tap meets, and nothing else. Needs memory for the
/// sums of a plane for each thread. Cost: a few operations for each of those meetings.
template <class T>
[[nodiscard]] bool run_sparse(const Conv<T>& c, Scratch& scratch);

}  // namespace executorch::cpu
