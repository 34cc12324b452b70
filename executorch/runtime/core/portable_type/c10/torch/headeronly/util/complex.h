/// c10::complex under the name that PyTorch gives it since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/util/complex.h>)
#include_next <torch/headeronly/util/complex.h>
#else

#include <c10/util/complex.h>

namespace torch::headeronly {
using c10::complex;
}  // namespace torch::headeronly

#endif
