/// c10::BFloat16 under the name that PyTorch gives it since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/util/BFloat16.h>)
#include_next <torch/headeronly/util/BFloat16.h>
#else

#include <c10/util/BFloat16.h>

namespace torch::headeronly {
using c10::BFloat16;
}  // namespace torch::headeronly

#endif
