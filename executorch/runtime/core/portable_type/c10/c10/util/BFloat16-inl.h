/// The arithmetic of c10::BFloat16, which its own header holds.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/BFloat16-inl.h>)
#include_next <c10/util/BFloat16-inl.h>
#else

#include <c10/util/BFloat16.h>

#endif
