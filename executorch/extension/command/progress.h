#pragma once

#include <chrono>
#include <string>

namespace executorch::extension::command {

/// How far something is, on stderr, once it has taken two seconds: a bar on a terminal, and
/// elsewhere a line every five seconds.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)) {}
  /// Removes the bar.
  ~Progress();
  /// `done` of 1.
  void show(double done);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(2);
  bool shown_ = false;
};

}  // namespace executorch::extension::command
