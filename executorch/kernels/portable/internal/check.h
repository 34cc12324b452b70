/// How a kernel reports a bad argument: one log line `op: what was found; what was expected`, the
/// context marked failed, and an early return.
#pragma once

#include <executorch/runtime/kernel/kernel_includes.h>
#include <executorch/runtime/platform/log.h>

/// Unless `condition` holds: logs the printf-style message, fails the kernel's `ctx` with
/// Error::`error` and returns `result`.
#define ET_REQUIRE(ctx, condition, error, result, ...) \
  do {                                                 \
    if (!(condition)) [[unlikely]] {                   \
      ET_LOG(Error, __VA_ARGS__);                      \
      (ctx).fail(::executorch::runtime::Error::error); \
      return result;                                   \
    }                                                  \
  } while (false)
