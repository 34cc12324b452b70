#pragma once

#include <cstddef>
#include <cstdint>

// Where messages go. An application replaces tk_pal_emit_log_message (it is weak); the default
// writes to stderr.

#ifndef TK_LOG_ENABLED
#define TK_LOG_ENABLED 1
#endif
/// Lowest level that is compiled in, a name of tokenizers::LogLevel.
#ifndef TK_MIN_LOG_LEVEL
#define TK_MIN_LOG_LEVEL Error
#endif
#define TK_WEAK __attribute__((weak))
#define TK_INTERNAL_PLATFORM_WEAKNESS TK_WEAK
#define TK_PRINTFLIKE(_string_index, _va_index) \
  __attribute__((format(printf, _string_index, _va_index)))
#define TK_SHORT_FILENAME __FILE__
#define TK_LINE __LINE__
#define TK_FUNCTION __func__
#define TK_LOG_OUTPUT_FILE stderr

namespace tokenizers {

extern "C" {
typedef enum {
  kDebug = 'D',
  kInfo = 'I',
  kError = 'E',
  kFatal = 'F',
  kUnknown = '?',
} tk_pal_log_level_t;

void TK_INTERNAL_PLATFORM_WEAKNESS tk_pal_emit_log_message(tk_pal_log_level_t level,
                                                           const char* filename,
                                                           const char* function, size_t line,
                                                           const char* message, size_t length);
}

enum class LogLevel : uint8_t { Debug, Info, Error, Fatal, NumLevels };

namespace internal {
/// Formats and emits; long messages are cut at 1 KiB.
void log(LogLevel level, const char* filename, const char* function, size_t line,
         const char* format, ...) TK_PRINTFLIKE(5, 6);
}  // namespace internal

}  // namespace tokenizers

#if TK_LOG_ENABLED
#define TK_LOG(_level, _format, ...)                                                              \
  do {                                                                                            \
    if (::tokenizers::LogLevel::_level >= ::tokenizers::LogLevel::TK_MIN_LOG_LEVEL) {             \
      ::tokenizers::internal::log(::tokenizers::LogLevel::_level, TK_SHORT_FILENAME, TK_FUNCTION, \
                                  TK_LINE, _format, ##__VA_ARGS__);                               \
    }                                                                                             \
  } while (0)
#else
#define TK_LOG(_level, _format, ...) ((void)0)
#endif
