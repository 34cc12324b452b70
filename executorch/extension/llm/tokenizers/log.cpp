#include <executorch/extension/llm/tokenizers/log.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace tokenizers {

void tk_pal_emit_log_message(tk_pal_log_level_t level, const char* filename, const char* function,
                             size_t line, const char* message, size_t length) {
  std::fprintf(TK_LOG_OUTPUT_FILE, "%c tokenizers:%s:%zu %s] %.*s\n", static_cast<char>(level),
               filename, line, function, static_cast<int>(length), message);
}

namespace internal {

void log(LogLevel level, const char* filename, const char* function, size_t line,
         const char* format, ...) {
  constexpr tk_pal_log_level_t kLetters[] = {kDebug, kInfo, kError, kFatal};
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  if (written < 0) return;
  const size_t length = std::min(static_cast<size_t>(written), sizeof(message) - 1);
  const auto index = static_cast<size_t>(level);
  tk_pal_emit_log_message(index < 4 ? kLetters[index] : kUnknown, filename, function, line, message,
                          length);
}

}  // namespace internal
}  // namespace tokenizers
