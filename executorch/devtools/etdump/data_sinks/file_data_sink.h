#pragma once

#include <cstdio>
#include <utility>

#include <executorch/devtools/etdump/data_sinks/data_sink_base.h>

namespace executorch {
namespace etdump {

/// A sink that is a file, laid out as a BufferDataSink's memory with alignment 64.
class FileDataSink : public DataSinkBase {
 public:
  static constexpr size_t kAlignment = 64;

  /// Replaces the file. AccessFailed if it cannot be opened.
  static runtime::Result<FileDataSink> create(const char* file_path);

  ~FileDataSink() override { close(); }
  FileDataSink(FileDataSink&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), used_(other.used_) {}
  FileDataSink& operator=(FileDataSink&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(used_, other.used_);
    return *this;
  }

  /// AccessFailed when the file does not take it all, or is closed.
  runtime::Result<size_t> write(const void* ptr, size_t size) override;
  size_t get_used_bytes() const override { return used_; }

  /// What was written is complete then; further writes fail.
  void close();

 private:
  explicit FileDataSink(std::FILE* file) : file_(file) {}

  std::FILE* file_;
  size_t used_ = 0;
};

}  // namespace etdump
}  // namespace executorch
