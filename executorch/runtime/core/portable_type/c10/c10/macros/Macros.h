/// The macros of c10 that portable code uses. PyTorch's own header wins where it is on the include
/// path as well; so do all headers of this folder.
#pragma once
#ifdef __GNUC__
#pragma GCC system_header
#endif
#if __has_include_next(<c10/macros/Macros.h>)
#include_next <c10/macros/Macros.h>
#else

#include <c10/macros/Export.h>

#define C10_CONCATENATE_IMPL(s1, s2) s1##s2
#define C10_CONCATENATE(s1, s2) C10_CONCATENATE_IMPL(s1, s2)
#define C10_STRINGIZE_IMPL(x) #x
#define C10_STRINGIZE(x) C10_STRINGIZE_IMPL(x)
#define C10_ANONYMOUS_VARIABLE(str) C10_CONCATENATE(str, __LINE__)

#define C10_NODISCARD [[nodiscard]]
#define C10_UNUSED [[maybe_unused]]
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_HOST
#define C10_RESTRICT __restrict

#if defined(__GNUC__)
#define C10_LIKELY(expr) (__builtin_expect(static_cast<bool>(expr), 1))
#define C10_UNLIKELY(expr) (__builtin_expect(static_cast<bool>(expr), 0))
#define C10_NOINLINE __attribute__((noinline))
#define C10_ALWAYS_INLINE __attribute__((__always_inline__)) inline
#define C10_ALWAYS_INLINE_ATTRIBUTE __attribute__((__always_inline__))
#define C10_ATTR_VISIBILITY_HIDDEN __attribute__((__visibility__("hidden")))
#else
#define C10_LIKELY(expr) (expr)
#define C10_UNLIKELY(expr) (expr)
#define C10_NOINLINE
#define C10_ALWAYS_INLINE inline
#define C10_ALWAYS_INLINE_ATTRIBUTE
#define C10_ATTR_VISIBILITY_HIDDEN
#endif

#ifdef __has_cpp_attribute
#define C10_HAS_CPP_ATTRIBUTE(x) __has_cpp_attribute(x)
#else
#define C10_HAS_CPP_ATTRIBUTE(x) (0)
#endif

#if defined(__clang__)
#define C10_CLANG_DIAGNOSTIC_PUSH() _Pragma("clang diagnostic push")
#define C10_CLANG_DIAGNOSTIC_POP() _Pragma("clang diagnostic pop")
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag) _Pragma(C10_STRINGIZE(clang diagnostic ignored flag))
#else
#define C10_CLANG_DIAGNOSTIC_PUSH()
#define C10_CLANG_DIAGNOSTIC_POP()
#define C10_CLANG_DIAGNOSTIC_IGNORE(flag)
#endif

#if defined(__GNUC__)
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning) \
  _Pragma("GCC diagnostic push") _Pragma(C10_STRINGIZE(GCC diagnostic ignored warning))
#define C10_DIAGNOSTIC_POP() _Pragma("GCC diagnostic pop")
#else
#define C10_DIAGNOSTIC_PUSH_AND_IGNORED_IF_DEFINED(warning)
#define C10_DIAGNOSTIC_POP()
#endif

#endif
