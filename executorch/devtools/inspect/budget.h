#pragma once

#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/table.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace executorch::devtools {

/// A limit on the size of a file's description. One part of a file may be referred to by many
/// others, so that the description of a small hostile file could be endless; in other files, each
/// part is described about once.
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

  /// The text as printable() has it.
  std::string name(std::string_view text) {
    take(text.size() + 1);
    return printable(text, false);
  }
  /// The same, but line ends and tabs are kept.
  std::string text(std::string_view text) {
    take(text.size() + 1);
    return printable(text, true);
  }

 private:
  const std::string path_;
  uint64_t left_;
};

}  // namespace executorch::devtools
