/// Compiler attributes and built-ins under one spelling, for C++17 and later.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#if defined(_MSC_VER) && !defined(__clang__)
using ssize_t = ptrdiff_t;
#define ET_NOINLINE __declspec(noinline)
#define ET_INLINE __forceinline
#define ET_INLINE_ATTRIBUTE
#define ET_RESTRICT __restrict
#define ET_WEAK
#define ET_PRINTFLIKE(fmt_idx, va_idx)
#define ET_LIKELY(x) (x)
#define ET_UNLIKELY(x) (x)
#define ET_BUILTIN_UNREACHABLE() __assume(0)
#define ET_FUNCTION __FUNCTION__
#define ET_HAVE_GNU_STATEMENT_EXPRESSIONS 0
#else
#define ET_NOINLINE __attribute__((noinline))
#define ET_INLINE __attribute__((always_inline)) inline
#define ET_INLINE_ATTRIBUTE __attribute__((always_inline))
#define ET_RESTRICT __restrict__
#define ET_WEAK __attribute__((weak))
#define ET_PRINTFLIKE(fmt_idx, va_idx) __attribute__((format(printf, fmt_idx, va_idx)))
#define ET_LIKELY(x) (__builtin_expect(!!(x), 1))
#define ET_UNLIKELY(x) (__builtin_expect(!!(x), 0))
#define ET_BUILTIN_UNREACHABLE() __builtin_unreachable()
#define ET_FUNCTION __FUNCTION__
#define ET_HAVE_GNU_STATEMENT_EXPRESSIONS 1
#endif

#define ET_NORETURN [[noreturn]]
#define ET_DEPRECATED [[deprecated]]
#define ET_EXPERIMENTAL [[deprecated("This API is experimental and may change without notice.")]]
#define ET_FALLTHROUGH [[fallthrough]]
#define ET_NODISCARD [[nodiscard]]
#define ET_UNUSED [[maybe_unused]]
#define ET_UNREACHABLE() ET_BUILTIN_UNREACHABLE()

#if defined(__FILE_NAME__)
#define ET_SHORT_FILENAME __FILE_NAME__
#elif defined(__GNUC__)
#define ET_SHORT_FILENAME \
  (__builtin_strrchr("/" __FILE__, '/') + 1)  // The prefix makes sure that a slash is found.
#else
#define ET_SHORT_FILENAME __FILE__
#endif
#define ET_LINE __LINE__

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define ET_HAS_EXCEPTIONS 1
#else
#define ET_HAS_EXCEPTIONS 0
#endif

/// printf conversions of size_t and ssize_t.
#define ET_PRIsize_t "zu"
#define ET_PRIssize_t "zd"

// Spellings of releases 0.1 to 0.3.
#define __ET_NORETURN ET_NORETURN
#define __ET_NOINLINE ET_NOINLINE
#define __ET_INLINE ET_INLINE
#define __ET_INLINE_ATTRIBUTE ET_INLINE_ATTRIBUTE
#define __ET_DEPRECATED ET_DEPRECATED
#define __ET_FALLTHROUGH ET_FALLTHROUGH
#define __ET_NODISCARD ET_NODISCARD
#define __ET_UNUSED ET_UNUSED
#define __ET_UNREACHABLE() ET_UNREACHABLE()
#define __ET_LIKELY(x) ET_LIKELY(x)
#define __ET_UNLIKELY(x) ET_UNLIKELY(x)
#define __ET_WEAK ET_WEAK
#define __ET_PRINTFLIKE(fmt_idx, va_idx) ET_PRINTFLIKE(fmt_idx, va_idx)
#define __ET_SHORT_FILENAME ET_SHORT_FILENAME
#define __ET_LINE ET_LINE
#define __ET_FUNCTION ET_FUNCTION
#define __ET_HAVE_GNU_STATEMENT_EXPRESSIONS ET_HAVE_GNU_STATEMENT_EXPRESSIONS
