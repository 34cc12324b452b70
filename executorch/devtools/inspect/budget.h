#pragma once

#include <executorch/devtools/inspect/describe.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace executorch::devtools {

/// What may be said of a file. One part of a file can be named by many others, so that a small file
/// could have a description without end; that of an honest one holds each part about once.
class Budget {
 public:
  Budget(std::string path, uint64_t file_bytes) : path_(std::move(path)), left_(file_bytes) {}

  /// Throws InspectError when more is described than some multiple of the file's bytes.
  void take(uint64_t bytes) {
    if (bytes > left_) {
      throw InspectError{path_ + ": its parts name each other so often that it is not described"};
    }
    left_ -= bytes;
  }

  /// As UTF-8, whatever the file has there: wrong bytes and control characters are shown as "?".
  std::string name(std::string_view text) {
    take(text.size() + 1);
    return clean(text, false);
  }
  /// The same, with its line ends and tabs.
  std::string text(std::string_view text) {
    take(text.size() + 1);
    return clean(text, true);
  }

 private:
  static std::string clean(std::string_view text, bool keeps_space);

  const std::string path_;
  uint64_t left_;
};

}  // namespace executorch::devtools
