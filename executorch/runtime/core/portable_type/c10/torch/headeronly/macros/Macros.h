/// The macros of c10/macros/Macros.h under the name that PyTorch gives them since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/macros/Macros.h>)
#include_next <torch/headeronly/macros/Macros.h>
#else

#include <c10/macros/Macros.h>

#endif
