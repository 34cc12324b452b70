#pragma once

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstddef>
#include <string>
#include <utility>

namespace executorch::extension::internal {

/// An open regular file that is read by position; what the file loaders have in common.
/// Owns the descriptor. Every error names the file, the range asked for and the system's reason.
class FileHandle final {
 public:
  /// AccessFailed when the file cannot be opened or is not a regular file. Never waits for a pipe's
  /// other end.
  static runtime::Result<FileHandle> open(const char* path);
  /// Takes the descriptor over, also on failure.
  static runtime::Result<FileHandle> adopt(int fd, const char* name);

  FileHandle(FileHandle&& rhs) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle();

  int fd() const { return fd_; }
  size_t size() const { return size_; }
  /// InvalidState after the handle was moved from.
  runtime::Result<size_t> size_if_open() const;
  const char* name() const { return name_.c_str(); }

  /// InvalidArgument unless [offset, offset + size) lies in the file.
  runtime::Error check_range(size_t offset, size_t size) const;
  /// Fills `buffer` completely. AccessFailed when the system or a file that shrank gives fewer
  /// bytes.
  runtime::Error read(size_t offset, size_t size, void* buffer) const;
  /// Reads into a new buffer aligned to `alignment`, a power of two.
  runtime::Result<runtime::FreeableBuffer> load(size_t offset, size_t size, size_t alignment) const;

 private:
  FileHandle(int fd, size_t size, std::string name)
      : fd_(fd), size_(size), name_(std::move(name)) {}

  int fd_;
  size_t size_;
  std::string name_;
};

/// Reads what is asked for: the loaders of files by path and by descriptor.
class FileReader : public runtime::DataLoader {
 public:
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const SegmentInfo& segment_info) const override;
  ET_NODISCARD runtime::Result<size_t> size() const override;
  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* buffer) const override;

 protected:
  FileReader(FileHandle file, size_t alignment) : file_(std::move(file)), alignment_(alignment) {}

 private:
  FileHandle file_;
  size_t alignment_;
};

/// InvalidArgument, with a message naming the file, unless `alignment` is a power of two.
runtime::Error check_alignment(const char* name, size_t alignment);

}  // namespace executorch::extension::internal
