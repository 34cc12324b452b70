#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/runtime/platform/platform.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace executorch::extension::c_api {
namespace {

/// Room for " (DelegateMemoryAllocationFailed)", the longest, behind messages of any length.
constexpr size_t kStatusBytes = 64;

thread_local char last[4096] = "";
thread_local CallMessages* innermost = nullptr;
std::atomic<executorch_log_function> log_function{nullptr};
std::atomic<void*> log_user{nullptr};

void emit(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
          const char* message, size_t length) {
  if (level == ::kError || level == ::kFatal) CallMessages::add(message, length);
  if (const auto log = log_function.load()) log(static_cast<char>(level), message, log_user.load());
}

}  // namespace

CallMessages::CallMessages(const char* function) : outer_(innermost) {
  [[maybe_unused]] static const bool installed =
      runtime::register_pal(runtime::PalImpl::create(&emit, __FILE__));
  innermost = this;
  append(function, std::strlen(function), kStatusBytes);
}

CallMessages::~CallMessages() {
  innermost = outer_;
}

void CallMessages::append(const char* added, size_t n, size_t reserved) {
  const size_t room = sizeof(text_) - 1 - reserved - length_;
  if (n > room) {
    for (n = room; n > 0 && (static_cast<unsigned char>(added[n]) & 0xC0) == 0x80;) --n;
  }
  std::memcpy(text_ + length_, added, n);
  length_ += n;
  text_[length_] = 0;
}

void CallMessages::add(const char* message, size_t length) {
  if (innermost == nullptr) return;
  CallMessages& call = *innermost;
  // Join messages to one line. A message that begins with spaces is an entry of a list and follows a
  // space; others follow ": " or "; ".
  const size_t indent = std::strspn(message, " ");
  const char* const separator = indent > 0 ? " " : call.has_message_ ? "; " : ": ";
  call.append(separator, std::strlen(separator), kStatusBytes);
  call.append(message + indent, length - indent, kStatusBytes);
  call.has_message_ = true;
}

executorch_status CallMessages::finish(runtime::Error error) {
  if (error != runtime::Error::Ok) {
    const char* const name = runtime::to_string(error);
    const char* const colon = std::strrchr(name, ':');
    char status[kStatusBytes];
    const int n =
        std::snprintf(status, sizeof(status), " (%s)", colon == nullptr ? name : colon + 1);
    append(status, static_cast<size_t>(n), 0);
    std::memcpy(last, text_, length_ + 1);
  }
  return static_cast<executorch_status>(error);
}

const char* last_error() {
  return last;
}

void set_log(executorch_log_function log, void* user) {
  log_function = nullptr;
  log_user = user;
  log_function = log;
}

}  // namespace executorch::extension::c_api
