/// How code with std containers, which throw when memory runs out, meets the runtime, which returns
/// errors and is compiled without exceptions.
///
///   Error MyBackend::execute(...) {
///     return catch_allocation_failure("my backend", [&] { return execute_throwing(...); });
///   }
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include <new>
#include <stdexcept>

namespace executorch {
namespace runtime {

/// f(), which returns an Error or a Result; MemoryAllocationFailed, with a message that begins with
/// `what`, where it throws for want of memory or because a container would exceed its limits.
/// Targets that use it are compiled with exceptions.
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

}  // namespace runtime
}  // namespace executorch
