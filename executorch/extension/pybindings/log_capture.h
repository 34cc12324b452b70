#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/platform.h>

#include <string>
#include <vector>

namespace executorch::extension::pybindings {

/// Keeps what the runtime logs at Error level on this thread while it lives, so that the reason of
/// a failure can travel inside a Python exception. Lines nobody took are emitted as usual when it
/// ends, unless it was made to drop them; captures nest. Lines of other threads and other levels
/// are not touched.
class LogCapture {
 public:
  enum Untaken { kEmitted, kDropped };
  /// `untaken`: what becomes of lines that nobody took.
  explicit LogCapture(Untaken untaken = kEmitted);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Throws std::runtime_error (RuntimeError in Python): `what` failed with `error`, then the
  /// captured lines. Needs no GIL.
  [[noreturn]] void fail(const std::string& what, runtime::Error error);

  /// fail() unless `error` is Ok.
  void check(runtime::Error error, const std::string& what) {
    if (error != runtime::Error::Ok) fail(what, error);
  }

  /// Routes the platform's log hook through the captures; once per process, before any other use.
  static void install();

 private:
  struct Line {
    et_timestamp_t timestamp;
    const char* file;
    const char* function;
    size_t line;
    std::string message;
  };
  static void emit(et_timestamp_t timestamp, et_pal_log_level_t level, const char* file,
                   const char* function, size_t line, const char* message, size_t length);

  const Untaken untaken_;
  LogCapture* outer_;
  std::vector<Line> lines_;
};

}  // namespace executorch::extension::pybindings
