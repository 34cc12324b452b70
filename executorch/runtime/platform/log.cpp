#include <executorch/runtime/platform/log.h>

#include <stdio.h>

#include <executorch/runtime/platform/platform.h>

namespace executorch::runtime::internal {
namespace {

constexpr size_t kMaxMessageBytes = 256;

et_pal_log_level_t pal_level(LogLevel level) {
  constexpr char kLetters[] = "DIEF?";
  const auto index = static_cast<size_t>(level);
  constexpr auto kLevels = static_cast<size_t>(LogLevel::NumLevels);
  return static_cast<et_pal_log_level_t>(kLetters[index < kLevels ? index : kLevels]);
}

/// The largest count of bytes, at most `length`, that does not end inside a UTF-8 sequence.
size_t utf8_boundary(const char* text, size_t length) {
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  return length;
}

}  // namespace

et_timestamp_t get_log_timestamp() {
  return pal_current_ticks();
}

void vlogf(LogLevel level, et_timestamp_t timestamp, const char* filename, const char* function,
           size_t line, const char* format, va_list args) {
  // One byte more than a message may have, to see whether the cut falls inside a character.
  char message[kMaxMessageBytes + 1];
  const int needed = vsnprintf(message, sizeof(message), format, args);
  size_t length = needed < 0 ? 0 : static_cast<size_t>(needed);
  if (length >= kMaxMessageBytes) length = utf8_boundary(message, kMaxMessageBytes - 1);
  message[length] = '\0';
  pal_emit_log_message(timestamp, pal_level(level), filename, function, line, message, length);
}

void logf(LogLevel level, const char* filename, const char* function, size_t line,
          const char* format, ...) {
  va_list args;
  va_start(args, format);
  vlogf(level, get_log_timestamp(), filename, function, line, format, args);
  va_end(args);
}

}  // namespace executorch::runtime::internal
