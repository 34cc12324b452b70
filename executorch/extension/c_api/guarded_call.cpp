#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/runtime/platform/platform.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace executorch::extension::c_api {
namespace {

/// The messages of one thread. They need no heap memory, which may be what is missing.
struct Text {
  char last[4096] = "";
  char now[4096] = "";
  size_t length = 0;
  bool open = false;
  bool has_message = false;

  void append(const char* added, size_t n) {
    const size_t room = sizeof(now) - 1 - length;
    n = n < room ? n : room;
    std::memcpy(now + length, added, n);
    length += n;
    now[length] = 0;
  }
  void append(const char* added) { append(added, std::strlen(added)); }
};

thread_local Text text;
std::atomic<executorch_log_function> log_function{nullptr};
std::atomic<void*> log_user{nullptr};

void emit(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
          const char* message, size_t length) {
  const bool is_error = level == ::kError || level == ::kFatal;
  if (text.open && is_error) {
    // Join messages to one line. A message that begins with spaces is an entry of a list and
    // follows a space; others follow ": " or "; ".
    const size_t indent = std::strspn(message, " ");
    text.append(indent > 0 ? " " : text.has_message ? "; " : ": ");
    text.append(message + indent, length - indent);
    text.has_message = true;
  }
  if (const auto log = log_function.load()) log(static_cast<char>(level), message, log_user.load());
}

}  // namespace

CallMessages::CallMessages(const char* function) {
  [[maybe_unused]] static const bool installed =
      runtime::register_pal(runtime::PalImpl::create(&emit, __FILE__));
  text.length = 0;
  text.open = true;
  text.has_message = false;
  text.append(function);
}

CallMessages::~CallMessages() {
  text.open = false;
}

executorch_status CallMessages::finish(runtime::Error error) {
  if (error != runtime::Error::Ok) {
    const char* name = runtime::to_string(error);
    const char* end = std::strrchr(name, ':');
    text.append(" (");
    text.append(end == nullptr ? name : end + 1);
    text.append(")");
    std::memcpy(text.last, text.now, text.length + 1);
  }
  return static_cast<executorch_status>(error);
}

const char* last_error() {
  return text.last;
}

void set_log(executorch_log_function log, void* user) {
  log_function = nullptr;
  log_user = user;
  log_function = log;
}

}  // namespace executorch::extension::c_api
