/// The arithmetic of c10::Half, which its own header holds.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/util/Half-inl.h>)
#include_next <c10/util/Half-inl.h>
#else

#include <c10/util/Half.h>

#endif
