/// The platform layer: the few functions of an operating system that the runtime needs.
///
/// Two ways to replace them:
///   at link time  define one of the C functions `et_pal_*`; the built-in ones are weak
///   at run time   `register_pal(PalImpl::create(...))`; a null entry keeps what was there
///
/// A host that wants the reason of a failure as a string, such as a language binding, registers
/// an emit function that keeps messages of level kError and kFatal (in thread-local storage, as
/// the function runs on the thread that logs) and passes each on to `et_pal_emit_log_message`:
///
///   void keep(et_timestamp_t t, et_pal_log_level_t level, const char* file, const char* function,
///             size_t line, const char* message, size_t length) {
///     if (level == kError) last_error.assign(message, length);
///     et_pal_emit_log_message(t, level, file, function, line, message, length);
///   }
///   register_pal(PalImpl::create(keep, __FILE__));
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <executorch/runtime/platform/compiler.h>
#include <executorch/runtime/platform/types.h>

#ifndef ET_INTERNAL_PLATFORM_WEAKNESS
#define ET_INTERNAL_PLATFORM_WEAKNESS
#endif

extern "C" {

/// Nanoseconds per tick = numerator / denominator.
typedef struct {
  uint64_t numerator;
  uint64_t denominator;
} et_tick_ratio_t;

/// The values are printable: the letter that stands in the log line.
typedef enum {
  kDebug = 'D',
  kInfo = 'I',
  kError = 'E',
  kFatal = 'F',
  kUnknown = '?',
} et_pal_log_level_t;

typedef et_timestamp_t (*et_pal_current_ticks_t)(void);

/// Called before any other of these functions, perhaps again, and by several threads at once.
void et_pal_init(void) ET_INTERNAL_PLATFORM_WEAKNESS;
ET_NORETURN void et_pal_abort(void) ET_INTERNAL_PLATFORM_WEAKNESS;
et_timestamp_t et_pal_current_ticks(void) ET_INTERNAL_PLATFORM_WEAKNESS;
et_tick_ratio_t et_pal_ticks_to_ns_multiplier(void) ET_INTERNAL_PLATFORM_WEAKNESS;

/// `message` is `length` bytes of UTF-8 and ends with a zero byte that `length` does not count.
void et_pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level,
                             const char* filename, const char* function, size_t line,
                             const char* message, size_t length) ET_INTERNAL_PLATFORM_WEAKNESS;

/// Memory for at least `size` bytes, aligned for any scalar; null when there is none.
void* et_pal_allocate(size_t size) ET_INTERNAL_PLATFORM_WEAKNESS;
/// Takes what `et_pal_allocate` gave, or null.
void et_pal_free(void* ptr) ET_INTERNAL_PLATFORM_WEAKNESS;

}  // extern "C"

namespace executorch::runtime {

using pal_init_method = void (*)();
using pal_abort_method = void (*)();
using pal_current_ticks_method = et_timestamp_t (*)();
using pal_ticks_to_ns_multiplier_method = et_tick_ratio_t (*)();
using pal_emit_log_message_method = void (*)(et_timestamp_t timestamp, et_pal_log_level_t level,
                                             const char* filename, const char* function,
                                             size_t line, const char* message, size_t length);
using pal_allocate_method = void* (*)(size_t size);
using pal_free_method = void (*)(void* ptr);

/// A set of platform functions; null means "keep the present one".
struct PalImpl {
  static PalImpl create(pal_emit_log_message_method emit_log_message, const char* source_filename);
  static PalImpl create(pal_init_method init, pal_abort_method abort,
                        pal_current_ticks_method current_ticks,
                        pal_ticks_to_ns_multiplier_method ticks_to_ns_multiplier,
                        pal_emit_log_message_method emit_log_message, pal_allocate_method allocate,
                        pal_free_method free, const char* source_filename);

  pal_init_method init = nullptr;
  pal_abort_method abort = nullptr;
  pal_current_ticks_method current_ticks = nullptr;
  pal_ticks_to_ns_multiplier_method ticks_to_ns_multiplier = nullptr;
  pal_emit_log_message_method emit_log_message = nullptr;
  pal_allocate_method allocate = nullptr;
  pal_free_method free = nullptr;
  /// Where the set was made, for people who debug.
  const char* source_filename = nullptr;
};

/// Replaces the platform functions that `impl` names; true unless an allocator is given by halves
/// (allocate without free or the reverse). Calls the init that `impl` names. Not thread-safe: call
/// it before other threads use the runtime.
bool register_pal(PalImpl impl);

/// The functions in use; lives as long as the program.
const PalImpl* get_pal_impl();

void pal_init();
ET_NORETURN void pal_abort();
et_timestamp_t pal_current_ticks();
et_tick_ratio_t pal_ticks_to_ns_multiplier();
void pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level, const char* filename,
                          const char* function, size_t line, const char* message, size_t length);
void* pal_allocate(size_t size);
void pal_free(void* ptr);

}  // namespace executorch::runtime
