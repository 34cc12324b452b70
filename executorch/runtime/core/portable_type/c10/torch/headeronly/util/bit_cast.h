/// c10::bit_cast under the name that PyTorch gives it since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/util/bit_cast.h>)
#include_next <torch/headeronly/util/bit_cast.h>
#else

#include <c10/util/bit_cast.h>

namespace torch::headeronly {
using c10::bit_cast;
}  // namespace torch::headeronly

#endif
