/// The bits of a float, and a float of its bits.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/floating_point_utils.h>)
#include_next <c10/util/floating_point_utils.h>
#else

#include <torch/headeronly/util/floating_point_utils.h>

namespace c10::detail {
using ::torch::headeronly::detail::fp32_from_bits;
using ::torch::headeronly::detail::fp32_to_bits;
}  // namespace c10::detail

#endif
