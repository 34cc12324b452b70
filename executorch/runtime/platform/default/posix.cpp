// The platform functions for Linux, macOS and other POSIX systems.
#include <executorch/runtime/platform/compiler.h>
// The header's declarations become weak here, and only here: an application's own definition wins.
#define ET_INTERNAL_PLATFORM_WEAKNESS ET_WEAK
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>

#include <executorch/runtime/platform/platform.h>

namespace {

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Set once, by whichever thread is first.
std::atomic<uint64_t> start_ns{0};

}  // namespace

extern "C" {

void et_pal_init(void) {
  uint64_t unset = 0;
  if (start_ns.load(std::memory_order_relaxed) == unset) {
    start_ns.compare_exchange_strong(unset, monotonic_ns(), std::memory_order_relaxed);
  }
}

ET_NORETURN void et_pal_abort(void) {
  abort();
}

et_timestamp_t et_pal_current_ticks(void) {
  // A static initialiser may log before runtime_init().
  et_pal_init();
  return monotonic_ns() - start_ns.load(std::memory_order_relaxed);
}

et_tick_ratio_t et_pal_ticks_to_ns_multiplier(void) {
  return {1, 1};
}

void et_pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level,
                             const char* filename, const char* function, size_t line,
                             const char* message, size_t length) {
  (void)function;
  (void)length;
  const uint64_t us = timestamp / 1000;
  const auto s = static_cast<unsigned>(us / 1000000);
  fprintf(stderr, "%c %02u:%02u:%02u.%06u executorch:%s:%zu] %s\n", static_cast<char>(level),
          s / 3600, s / 60 % 60, s % 60, static_cast<unsigned>(us % 1000000), filename, line,
          message);
}

void* et_pal_allocate(size_t size) {
  return malloc(size);
}

void et_pal_free(void* ptr) {
  free(ptr);
}

}  // extern "C"
