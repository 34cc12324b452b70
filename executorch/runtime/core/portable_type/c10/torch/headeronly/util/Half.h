/// c10::Half under the name that PyTorch gives it since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/util/Half.h>)
#include_next <torch/headeronly/util/Half.h>
#else

#include <c10/util/Half.h>

namespace torch::headeronly {
using c10::Half;
}  // namespace torch::headeronly

#endif
