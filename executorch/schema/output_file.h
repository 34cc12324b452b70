#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace executorch::schema {

/// A file that is written whole or not at all: beside its place first, which it then takes. What
/// was there keeps its permissions, and stays as it was if keep() is not called or fails. A
/// symbolic link stays one; devices and pipes are written to directly.
/// Functions return 0, or the errno of what failed.
class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int open(const std::string& path);
  int write(const void* data, size_t n_bytes);
  /// The last call.
  int keep();

 private:
  int open_beside();
  int close();

  std::string target_;
  /// Empty where `target_` itself is written to.
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

/// All of the file at once.
int write_file(const std::string& path, const void* data, size_t n_bytes);

}  // namespace executorch::schema
