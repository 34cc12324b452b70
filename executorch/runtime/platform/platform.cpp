#include <executorch/runtime/platform/platform.h>

#include <stdlib.h>

#include <executorch/runtime/platform/log.h>

namespace executorch::runtime {
namespace {

PalImpl& pal() {
  // Constant-initialised, so that static initialisers of any file may log and register.
  static PalImpl impl = {et_pal_init,
                         et_pal_abort,
                         et_pal_current_ticks,
                         et_pal_ticks_to_ns_multiplier,
                         et_pal_emit_log_message,
                         et_pal_allocate,
                         et_pal_free,
                         __FILE__};
  return impl;
}

template <typename Method>
void replace_unless_null(Method& present, Method next) {
  if (next != nullptr) present = next;
}

}  // namespace

PalImpl PalImpl::create(pal_emit_log_message_method emit_log_message, const char* source_filename) {
  return create(nullptr, nullptr, nullptr, nullptr, emit_log_message, nullptr, nullptr,
                source_filename);
}

PalImpl PalImpl::create(pal_init_method init, pal_abort_method abort,
                        pal_current_ticks_method current_ticks,
                        pal_ticks_to_ns_multiplier_method ticks_to_ns_multiplier,
                        pal_emit_log_message_method emit_log_message, pal_allocate_method allocate,
                        pal_free_method free, const char* source_filename) {
  return PalImpl{init,     abort, current_ticks,  ticks_to_ns_multiplier, emit_log_message,
                 allocate, free,  source_filename};
}

bool register_pal(PalImpl impl) {
  if ((impl.allocate == nullptr) != (impl.free == nullptr)) {
    ET_LOG(Error, "register_pal: %s gives allocate or free without the other",
           impl.source_filename != nullptr ? impl.source_filename : "(unknown file)");
    return false;
  }
  PalImpl& present = pal();
  replace_unless_null(present.init, impl.init);
  replace_unless_null(present.abort, impl.abort);
  replace_unless_null(present.current_ticks, impl.current_ticks);
  replace_unless_null(present.ticks_to_ns_multiplier, impl.ticks_to_ns_multiplier);
  replace_unless_null(present.emit_log_message, impl.emit_log_message);
  replace_unless_null(present.allocate, impl.allocate);
  replace_unless_null(present.free, impl.free);
  present.source_filename = impl.source_filename;
  if (impl.init != nullptr) impl.init();
  return true;
}

const PalImpl* get_pal_impl() {
  return &pal();
}

void pal_init() {
  pal().init();
}

void pal_abort() {
  pal().abort();
  // A replaced function may return; this one must not.
  abort();
}

et_timestamp_t pal_current_ticks() {
  return pal().current_ticks();
}

et_tick_ratio_t pal_ticks_to_ns_multiplier() {
  return pal().ticks_to_ns_multiplier();
}

void pal_emit_log_message(et_timestamp_t timestamp, et_pal_log_level_t level, const char* filename,
                          const char* function, size_t line, const char* message, size_t length) {
  pal().emit_log_message(timestamp, level, filename, function, line, message, length);
}

void* pal_allocate(size_t size) {
  return pal().allocate(size);
}

void pal_free(void* ptr) {
  pal().free(ptr);
}

}  // namespace executorch::runtime
