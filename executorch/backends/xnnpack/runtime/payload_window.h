/// Windows whose extents, strides, paddings and dilations go together.
#pragma once

#include <executorch/backends/xnnpack/runtime/payload_parts.h>

namespace executorch::backends::xnnpack::testing {

/// One axis of a window, borrowed from a node's table; null where the kind has no such field.
struct WindowAxis {
  uint32_t *size = nullptr, *stride = nullptr, *dilation = nullptr;
  uint32_t *before = nullptr, *after = nullptr, *adjustment = nullptr;
  bool transposed = false;
};
WindowAxis axis_of(fb::_XNNNodeConvT& conv, bool transposed, int d);
WindowAxis axis_of(fb::_XNNPooling2DT& pool, int d);
WindowAxis axis_of(fb::XNNArgMaxPooling2dT& pool, int d);

/// Strides, dilations and paddings of large numbers that mostly leave a small result of an image of
/// `in` pixels. The size of the window stays, unless `any_size`.
void couple(const WindowAxis& axis, uint32_t in, bool any_size, Random& random);

}  // namespace executorch::backends::xnnpack::testing
