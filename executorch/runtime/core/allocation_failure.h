/// Turns exceptions into errors, for code with std containers, which throw when memory runs out.
/// The runtime itself returns errors and is compiled without exceptions.
///
///   Error MyBackend::execute(...) {
///     return catch_allocation_failure("my backend", [&] { return execute_throwing(...); });
///   }
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include <new>
#include <stdexcept>

namespace executorch::runtime {

/// Returns f(), which is an Error or a Result. If f throws because memory runs out or a container
/// would exceed its limits, logs a message that begins with `what` and returns
/// MemoryAllocationFailed. Targets that use this must be compiled with exceptions.
template <class F>
auto catch_allocation_failure(const char* what, const F& f) -> decltype(f()) {
#ifdef __cpp_exceptions
  try {
    return f();
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "%s: out of memory", what);
  } catch (const std::length_error&) {
    ET_LOG(Error, "%s: something is larger than any memory", what);
  }
  return Error::MemoryAllocationFailed;
#else
  static_assert(sizeof(F) == 0, "compile what uses this with exceptions");
  (void)what;
  return f();
#endif
}

}  // namespace executorch::runtime
