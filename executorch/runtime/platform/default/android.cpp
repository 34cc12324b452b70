// The platform functions for Android: POSIX, except that log lines go to logcat.
#include <executorch/runtime/platform/compiler.h>
#define ET_INTERNAL_PLATFORM_WEAKNESS ET_WEAK
#include <android/log.h>
#include <stdlib.h>
#include <time.h>

#include <executorch/runtime/platform/platform.h>

extern "C" {

void et_pal_init(void) {}

ET_NORETURN void et_pal_abort(void) {
  abort();
}

et_timestamp_t et_pal_current_ticks(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

et_tick_ratio_t et_pal_ticks_to_ns_multiplier(void) {
  return {1, 1};
}

void et_pal_emit_log_message(et_timestamp_t, et_pal_log_level_t level, const char* filename,
                             const char*, size_t line, const char* message, size_t) {
  const int priority = level == kDebug   ? ANDROID_LOG_DEBUG
                       : level == kInfo  ? ANDROID_LOG_INFO
                       : level == kError ? ANDROID_LOG_ERROR
                       : level == kFatal ? ANDROID_LOG_FATAL
                                         : ANDROID_LOG_UNKNOWN;
  __android_log_print(priority, "ExecuTorch", "%s:%zu] %s", filename, line, message);
}

void* et_pal_allocate(size_t size) {
  return malloc(size);
}

void et_pal_free(void* ptr) {
  free(ptr);
}

}  // extern "C"
