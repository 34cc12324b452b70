#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace executorch::schema {

/// A file that is written whole or not at all: aside first, until it takes its place. What was
/// there keeps its permissions, and stays as it was if keep() is not called or fails. A symbolic
/// link stays one; devices and pipes are written to directly.
///
/// Where the system can, the file has no name until it is complete, so that a killed process leaves
/// nothing behind. Elsewhere it is PATH.0.part, or with the next free number, locked for as long as
/// it is written: who writes PATH next removes what nobody holds the lock of.
///
/// Functions return 0, or the errno of what failed.
class OutputFile {
 public:
  /// `may_be_unnamed`: false for the way of systems that know no files without a name.
  explicit OutputFile(bool may_be_unnamed = true) : may_be_unnamed_(may_be_unnamed) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int open(const std::string& path);
  int write(const void* data, size_t n_bytes);
  /// The last call.
  int keep();

 private:
  int open_aside();
  int take(int fd);
  int link_to(const std::string& path) const;
  template <class Make>
  int make_beside(Make make);
  int close();

  const bool may_be_unnamed_;
  /// Whether what is written has to take the place of `target_` at the end.
  bool is_aside_ = false;
  std::string target_;
  /// The name of a file aside; empty while it has none.
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

/// All of the file at once.
int write_file(const std::string& path, const void* data, size_t n_bytes);

}  // namespace executorch::schema
