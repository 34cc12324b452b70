#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <executorch/runtime/platform/log.h>

#include <cerrno>
#include <cstring>

namespace executorch {
namespace etdump {

using runtime::Error;
using runtime::Result;

Result<FileDataSink> FileDataSink::create(const char* file_path) {
  std::FILE* const file = std::fopen(file_path, "wb");
  ET_CHECK_OR_RETURN_ERROR(file != nullptr, AccessFailed, "%s cannot be written: %s", file_path,
                           std::strerror(errno));
  return FileDataSink(file);
}

Result<size_t> FileDataSink::write(const void* ptr, size_t size) {
  ET_CHECK_OR_RETURN_ERROR(file_ != nullptr, AccessFailed, "debug file: it is closed");
  if (size == 0) {
    return static_cast<size_t>(-1);
  }
  static constexpr char kZeros[kAlignment] = {};
  const size_t padding = (kAlignment - used_ % kAlignment) % kAlignment;
  ET_CHECK_OR_RETURN_ERROR(
      std::fwrite(kZeros, 1, padding, file_) == padding && std::fwrite(ptr, 1, size, file_) == size,
      AccessFailed, "debug file: %zu bytes at %zu cannot be written: %s", size, used_ + padding,
      std::strerror(errno));
  const size_t offset = used_ + padding;
  used_ = offset + size;
  return offset;
}

void FileDataSink::close() {
  if (file_ != nullptr && std::fclose(file_) != 0) {
    ET_LOG(Error, "debug file: the last bytes cannot be written: %s", std::strerror(errno));
  }
  file_ = nullptr;
}

}  // namespace etdump
}  // namespace executorch
