/// Every function of the C interface is one guarded call: what would leave it, errors, exceptions
/// and messages, becomes a status and the text of executorch_last_error().
#pragma once

#include <executorch/extension/c_api/executorch.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>

namespace executorch::extension::c_api {

/// Collects this thread's error messages while it lives. Calls nest: a function that the library
/// calls may call it in turn, and each call has the messages that come during it alone. Needs no
/// heap memory, which may be what is missing.
class CallMessages {
 public:
  explicit CallMessages(const char* function);
  ~CallMessages();
  CallMessages(const CallMessages&) = delete;
  CallMessages& operator=(const CallMessages&) = delete;

  /// Appends the name of `error` to the collected text unless it is Ok, and returns the status.
  executorch_status finish(runtime::Error error);
  /// Appends an error message to the text of the innermost call of this thread, if there is one.
  static void add(const char* message, size_t length);

 private:
  /// Appends what there is room for before the last `reserved` bytes, in whole characters.
  void append(const char* added, size_t n, size_t reserved);

  CallMessages* const outer_;
  size_t length_ = 0;
  bool has_message_ = false;
  char text_[4096];
};

const char* last_error();
void set_log(executorch_log_function log, void* user);

/// Calls f(), which returns an Error, and turns that or an exception into a status. Messages begin
/// with `function`.
template <class F>
executorch_status guarded(const char* function, const F& f) noexcept {
  CallMessages messages(function);
  try {
    return messages.finish(f());
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "out of memory");
    return messages.finish(runtime::Error::MemoryAllocationFailed);
  } catch (const std::length_error&) {
    ET_LOG(Error, "something is larger than any memory");
    return messages.finish(runtime::Error::MemoryAllocationFailed);
  } catch (const std::exception& e) {
    ET_LOG(Error, "%s", e.what());
  } catch (...) {
    ET_LOG(Error, "an exception of unknown type");
  }
  return messages.finish(runtime::Error::Internal);
}

/// Whether no argument is null. Else logs an error that lists `names`.
template <class... T>
bool all_given(const char* names, const T*... pointers) {
  if ((... && (pointers != nullptr))) return true;
  ET_LOG(Error, "%s: NULL is not allowed", names);
  return false;
}

}  // namespace executorch::extension::c_api
