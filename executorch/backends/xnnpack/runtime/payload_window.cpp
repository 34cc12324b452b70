#include <executorch/backends/xnnpack/runtime/payload_window.h>
#include <executorch/cpu/size.h>

#include <algorithm>

namespace executorch::backends::xnnpack::testing {

WindowAxis axis_of(fb::_XNNNodeConvT& conv, bool transposed, int d) {
  return d == 0 ? WindowAxis{&conv.kernel_height, &conv.subsampling_height, &conv.dilation_height,
                             &conv.padding_top,   &conv.padding_bottom,     &conv.adjustment_height,
                             transposed}
                : WindowAxis{&conv.kernel_width, &conv.subsampling_width, &conv.dilation_width,
                             &conv.padding_left, &conv.padding_right,     &conv.adjustment_width,
                             transposed};
}
WindowAxis axis_of(fb::_XNNPooling2DT& pool, int d) {
  return d == 0 ? WindowAxis{&pool.pooling_height, &pool.stride_height,  &pool.dilation_height,
                             &pool.padding_top,    &pool.padding_bottom, nullptr}
                : WindowAxis{&pool.pooling_width, &pool.stride_width,  &pool.dilation_width,
                             &pool.padding_left,  &pool.padding_right, nullptr};
}
WindowAxis axis_of(fb::XNNArgMaxPooling2dT& pool, int d) {
  return d == 0 ? WindowAxis{&pool.pooling_height, nullptr, nullptr, nullptr, nullptr, nullptr}
                : WindowAxis{&pool.pooling_width, nullptr, nullptr, nullptr, nullptr, nullptr};
}

void couple(const WindowAxis& axis, uint32_t in, bool any_size, Random& random) {
  const Linear linear(random);
  const bool small = one_in(4, random);
  const auto number = [&] { return small ? 1 + below(3, random) : linear(); };
  const auto set = [&](uint32_t* field, uint32_t value) {
    if (field != nullptr) *field = value;
  };
  if (any_size) set(axis.size, one_in(2, random) ? number() : 1 + below(4, random));
  set(axis.stride, one_in(2, random) ? 1 + below(2, random) : number());
  set(axis.dilation, one_in(2, random) ? 1 + below(2, random) : number());
  if (axis.transposed) set(axis.adjustment, one_in(2, random) ? 0 : number());
  if (axis.before == nullptr) return;
  const auto of = [](const uint32_t* field) { return field == nullptr ? 1 : int64_t{*field}; };
  const cpu::Size window = cpu::Size(of(axis.dilation)) * (of(axis.size) - 1) + 1;
  // The total padding with which the window leaves a few pixels of output, mostly.
  const int64_t rest = one_in(3, random) ? number() : below(4, random);
  const cpu::Size total =
      axis.transposed ? (cpu::Size(in) - 1) * of(axis.stride) + *axis.adjustment + window - rest
                      : window - in + rest;
  const int64_t padding = std::max<int64_t>(total.value_or(0), 0);
  const int64_t before = one_in(2, random)   ? padding / 2
                         : one_in(2, random) ? std::min<int64_t>(padding, 65536 - below(3, random))
                                             : 0;
  set(axis.before, static_cast<uint32_t>(before));
  set(axis.after, static_cast<uint32_t>(padding - before));
  if (one_in(16, random)) set(axis.before, number());
  if (one_in(16, random)) set(axis.after, number());
}

}  // namespace executorch::backends::xnnpack::testing
