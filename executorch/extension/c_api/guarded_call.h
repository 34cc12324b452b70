/// Every function of the C interface is one guarded call: what would leave it, errors, exceptions
/// and messages, becomes a status and the text of executorch_last_error().
#pragma once

#include <executorch/extension/c_api/executorch.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace executorch::extension::c_api {

/// Collects this thread's error messages while it lives.
class CallMessages {
 public:
  explicit CallMessages(const char* function);
  ~CallMessages();
  CallMessages(const CallMessages&) = delete;
  CallMessages& operator=(const CallMessages&) = delete;

  /// Appends the name of `error` to the collected text unless it is Ok, and returns the status.
  executorch_status finish(runtime::Error error);
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
