#pragma once

#include <cstddef>
#include <memory>

#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>

namespace executorch::etdump {

/// A sink that is a file, blob behind blob without padding. It takes the place of what was at its
/// path when it is closed; a process that is killed leaves that as it was.
class FileDataSink : public DataSinkBase {
 public:
  /// AccessFailed if it cannot be written, MemoryAllocationFailed.
  static runtime::Result<FileDataSink> create(const char* file_path);

  ~FileDataSink() override;
  FileDataSink(FileDataSink&& other) noexcept;
  FileDataSink& operator=(FileDataSink&& other) noexcept;

  /// AccessFailed when the file does not take it all, or is closed.
  runtime::Result<size_t> write(const void* ptr, size_t size) override;
  size_t get_used_bytes() const override { return used_; }

  /// What was written is complete then; further writes fail.
  void close();

 private:
  struct File;
  explicit FileDataSink(std::unique_ptr<File> file);

  /// Null when closed.
  std::unique_ptr<File> file_;
  size_t used_ = 0;
};

}  // namespace executorch::etdump
