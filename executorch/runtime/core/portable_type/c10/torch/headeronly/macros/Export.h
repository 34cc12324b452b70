/// The macros of c10/macros/Export.h under the name that PyTorch gives them since 2.9.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<torch/headeronly/macros/Export.h>)
#include_next <torch/headeronly/macros/Export.h>
#else

#include <c10/macros/Export.h>

#endif
