#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/macros/Export.h>)
#include_next <c10/macros/Export.h>
#else

// The runtime is linked statically: nothing is exported or imported.
#define C10_EXPORT
#define C10_IMPORT
#define C10_HIDDEN
#define C10_API
#define C10_API_ENUM
#define TORCH_API

#endif
