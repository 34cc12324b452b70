/// ET_LOG(Level, format, ...) hands one printf-formatted line to the platform's log function.
/// Level is the bare name Debug, Info, Error or Fatal. Lines below ET_MIN_LOG_LEVEL (default Info)
/// cost nothing; with ET_LOG_ENABLED=0 all are still type-checked but no code remains.
/// A message is cut to 255 bytes, at a UTF-8 boundary. Logging never allocates.
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>

#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/types.h>

#ifndef ET_MIN_LOG_LEVEL
#define ET_MIN_LOG_LEVEL Info
#endif
#ifndef ET_LOG_ENABLED
#define ET_LOG_ENABLED 1
#endif

namespace executorch::runtime {

enum class LogLevel : uint8_t {
  Debug,
  Info,
  Error,
  Fatal,
  NumLevels,
};

namespace internal {

/// The time that log lines carry.
et_timestamp_t get_log_timestamp();

/// Formats and emits one line stamped with the current time.
ET_PRINTFLIKE(5, 6)
void logf(LogLevel level, const char* filename, const char* function, size_t line,
          const char* format, ...);

void vlogf(LogLevel level, et_timestamp_t timestamp, const char* filename, const char* function,
           size_t line, const char* format, va_list args);

}  // namespace internal
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::LogLevel;
}  // namespace torch::executor

#define ET_LOG(_level, _format, ...)                                                          \
  do {                                                                                        \
    if (ET_LOG_ENABLED && ::executorch::runtime::LogLevel::_level >=                          \
                              ::executorch::runtime::LogLevel::ET_MIN_LOG_LEVEL) {            \
      ::executorch::runtime::internal::logf(::executorch::runtime::LogLevel::_level,          \
                                            ET_SHORT_FILENAME, ET_FUNCTION, ET_LINE, _format, \
                                            ##__VA_ARGS__);                                   \
    }                                                                                         \
  } while (false)

/// Logs at Error when `_condition` is false, and continues.
#define ET_CHECK_OR_LOG_ERROR(_condition, _format, ...) \
  do {                                                  \
    if (!(_condition)) {                                \
      ET_LOG(Error, _format, ##__VA_ARGS__);            \
    }                                                   \
  } while (false)
