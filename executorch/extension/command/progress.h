#pragma once

#include <chrono>
#include <string>

namespace executorch::extension::command {

/// A bar on stderr, once something has taken two seconds, if that is a terminal.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)) {}
  /// Removes the bar.
  ~Progress();
  /// `done` of 1.
  void show(double done);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace executorch::extension::command
