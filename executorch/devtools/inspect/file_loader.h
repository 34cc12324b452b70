#pragma once

#include <executorch/runtime/core/data_loader.h>

#include <fstream>
#include <string>

namespace executorch::devtools {

/// Reads spans of a regular file as they are asked for.
class FileLoader final : public runtime::DataLoader {
 public:
  /// Throws InspectError, which begins with the path, where there is no such file to read; never
  /// waits for a pipe.
  explicit FileLoader(const std::string& path);

  size_t file_bytes() const { return file_bytes_; }
  /// InvalidArgument beyond the end of the file, AccessFailed if reading fails,
  /// MemoryAllocationFailed.
  runtime::Result<runtime::FreeableBuffer> load(size_t offset, size_t size,
                                                const SegmentInfo& info) const override;
  /// InvalidArgument, AccessFailed.
  runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& info,
                           void* bytes) const override;
  runtime::Result<size_t> size() const override { return file_bytes_; }

 private:
  mutable std::ifstream file_;
  size_t file_bytes_ = 0;
};

/// Reads a whole regular file. Throws what FileLoader throws, and std::bad_alloc.
std::string read_whole_file(const std::string& path);

}  // namespace executorch::devtools
