#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/output_file.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace executorch::etdump {

using runtime::Error;
using runtime::Result;

struct FileDataSink::File {
  std::string path;
  schema::OutputFile output;
};

namespace {

int write_zeros(schema::OutputFile& output, size_t size) {
  static constexpr char kZeros[4096] = {};
  int failed = 0;
  while (failed == 0 && size > 0) {
    const size_t part = std::min(size, sizeof(kZeros));
    failed = output.write(kZeros, part);
    size -= part;
  }
  return failed;
}

}  // namespace

FileDataSink::FileDataSink(std::unique_ptr<File> file) : file_(std::move(file)) {}
FileDataSink::FileDataSink(FileDataSink&& other) noexcept = default;

FileDataSink& FileDataSink::operator=(FileDataSink&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(used_, other.used_);
  return *this;
}

FileDataSink::~FileDataSink() {
  close();
}

Result<FileDataSink> FileDataSink::create(const char* file_path) {
  try {
    auto file = std::make_unique<File>();
    file->path = file_path;
    const int failed = file->output.open(file->path);
    ET_CHECK_OR_RETURN_ERROR(failed == 0, AccessFailed, "%s cannot be written: %s", file_path,
                             std::strerror(failed));
    return FileDataSink(std::move(file));
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

Result<size_t> FileDataSink::write(const void* ptr, size_t size) {
  ET_CHECK_OR_RETURN_ERROR(file_ != nullptr, AccessFailed, "debug file: it is closed");
  if (size == 0) return used_;
  const int failed =
      ptr == nullptr ? write_zeros(file_->output, size) : file_->output.write(ptr, size);
  ET_CHECK_OR_RETURN_ERROR(failed == 0, AccessFailed, "%s: %zu bytes at %zu cannot be written: %s",
                           file_->path.c_str(), size, used_, std::strerror(failed));
  const size_t offset = used_;
  used_ += size;
  return offset;
}

void FileDataSink::close() {
  const std::unique_ptr<File> file = std::move(file_);
  const int failed = file == nullptr ? 0 : file->output.keep();
  if (failed != 0) {
    ET_LOG(Error, "%s: the last bytes cannot be written: %s", file->path.c_str(),
           std::strerror(failed));
  }
}

}  // namespace executorch::etdump
