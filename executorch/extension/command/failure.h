#pragma once

#include <executorch/runtime/core/error.h>

#include <string>
#include <utility>

namespace executorch::extension::command {

/// Thrown to end a command; the text is the cause, for stderr.
struct Failure {
  std::string cause;
  int exit_code = 1;
};

[[noreturn]] inline void fail(std::string cause) {
  throw Failure{std::move(cause)};
}

/// For what is wrong with the command line whatever the files hold.
[[noreturn]] inline void reject(std::string cause) {
  throw Failure{std::move(cause), 2};
}

inline void check(runtime::Error error, const std::string& what) {
  if (error != runtime::Error::Ok) fail("cannot " + what + ": " + runtime::to_string(error));
}

}  // namespace executorch::extension::command
