#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/file_loader.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>

namespace executorch::devtools {

using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;

FileLoader::FileLoader(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Before it is opened: what is no file may keep its reader waiting.
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw InspectError{path + ": is a " +
                       (fs::is_directory(status) ? "directory" : "device or pipe") +
                       ", expected a regular file"};
  }
  if (!error) file_bytes_ = static_cast<size_t>(fs::file_size(path, error));
  errno = 0;
  if (!error) file_.open(path, std::ios::binary);
  if (error || !file_.is_open()) {
    const std::string cause = error ? error.message() : std::strerror(errno);
    throw InspectError{(path.empty() ? "''" : path) + ": cannot open: " + cause};
  }
}

Result<FreeableBuffer> FileLoader::load(size_t offset, size_t size, const SegmentInfo& info) const {
  if (offset > file_bytes_ || size > file_bytes_ - offset) return Error::InvalidArgument;
  constexpr std::align_val_t kAlignment{alignof(std::max_align_t)};
  void* const bytes = ::operator new(size + 1, kAlignment, std::nothrow);
  if (bytes == nullptr) return Error::MemoryAllocationFailed;
  FreeableBuffer buffer(bytes, size,
                        [](void*, void* data, size_t) { ::operator delete(data, kAlignment); });
  ET_CHECK_OK_OR_RETURN_ERROR(load_into(offset, size, info, bytes));
  return buffer;
}

Error FileLoader::load_into(size_t offset, size_t size, const SegmentInfo&, void* bytes) const {
  if (offset > file_bytes_ || size > file_bytes_ - offset) return Error::InvalidArgument;
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
  return static_cast<size_t>(file_.gcount()) == size ? Error::Ok : Error::AccessFailed;
}

std::string read_whole_file(const std::string& path) {
  const FileLoader loader(path);
  std::string bytes(loader.file_bytes(), '\0');
  const Error error = loader.load_into(
      0, bytes.size(),
      runtime::DataLoader::SegmentInfo(runtime::DataLoader::SegmentInfo::Type::Program),
      bytes.data());
  if (error != Error::Ok) {
    throw InspectError{path + ": its " + std::to_string(bytes.size()) + " bytes cannot be read (" +
                       runtime::to_string(error) + ")"};
  }
  return bytes;
}

}  // namespace executorch::devtools
