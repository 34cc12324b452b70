#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace executorch::extension::internal {

using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;

namespace {

void free_aligned(void* alignment, void* data, size_t) {
  ::operator delete(data, std::align_val_t(reinterpret_cast<uintptr_t>(alignment)));
}

}  // namespace

Error check_alignment(const char* name, size_t alignment) {
  ET_CHECK_OR_RETURN_ERROR(alignment != 0 && (alignment & (alignment - 1)) == 0, InvalidArgument,
                           "%s: alignment %zu is not a power of two", name, alignment);
  return Error::Ok;
}

Result<FileHandle> FileHandle::open(const char* path) {
  ET_CHECK_OR_RETURN_ERROR(path != nullptr, InvalidArgument, "file loader: the path is null");
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  ET_CHECK_OR_RETURN_ERROR(fd >= 0, AccessFailed, "%s: cannot open: %s (errno %d)", path,
                           std::strerror(errno), errno);
  return adopt(fd, path);
}

Result<FileHandle> FileHandle::adopt(int fd, const char* name) {
  const auto handle = [&]() -> Result<FileHandle> {
    struct stat st;
    ET_CHECK_OR_RETURN_ERROR(::fstat(fd, &st) == 0, AccessFailed,
                             "%s: cannot get the size: %s (errno %d)", name, std::strerror(errno),
                             errno);
    ET_CHECK_OR_RETURN_ERROR(S_ISREG(st.st_mode), AccessFailed,
                             "%s: is %s, expected a regular file", name,
                             S_ISDIR(st.st_mode) ? "a directory" : "a device or pipe");
    return FileHandle(fd, static_cast<size_t>(st.st_size), name);
  };
  auto result = runtime::catch_allocation_failure(name, handle);
  if (!result.ok()) ::close(fd);
  return result;
}

FileHandle::FileHandle(FileHandle&& rhs) noexcept
    : fd_(std::exchange(rhs.fd_, -1)),
      size_(std::exchange(rhs.size_, 0)),
      name_(std::move(rhs.name_)) {}

Result<size_t> FileHandle::size_if_open() const {
  ET_CHECK_OR_RETURN_ERROR(
      fd_ >= 0, InvalidState,
      "file loader: asked for the size of a file that was moved to another loader");
  return size_;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

Error FileHandle::check_range(size_t offset, size_t size) const {
  ET_CHECK_OR_RETURN_ERROR(fd_ >= 0, InvalidState, "file loader: used after it was moved from");
  ET_CHECK_OR_RETURN_ERROR(offset <= size_ && size <= size_ - offset, InvalidArgument,
                           "%s: cannot load %zu bytes at offset %zu, the file has %zu bytes",
                           name(), size, offset, size_);
  return Error::Ok;
}

Error FileHandle::read(size_t offset, size_t size, void* buffer) const {
  ET_CHECK_OK_OR_RETURN_ERROR(check_range(offset, size));
  ET_CHECK_OR_RETURN_ERROR(buffer != nullptr || size == 0, InvalidArgument,
                           "%s: cannot load %zu bytes into a null buffer", name(), size);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd_, static_cast<char*>(buffer) + done, size - done,
                              static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0) {
      ET_LOG(Error, "%s: file ended after %zu of %zu bytes at offset %zu", name(), done, size,
             offset);
      return Error::AccessFailed;
    } else if (errno != EINTR) {
      ET_LOG(Error, "%s: cannot read %zu bytes at offset %zu: %s (errno %d)", name(), size, offset,
             std::strerror(errno), errno);
      return Error::AccessFailed;
    }
  }
  return Error::Ok;
}

Result<FreeableBuffer> FileHandle::load(size_t offset, size_t size, size_t alignment) const {
  ET_CHECK_OK_OR_RETURN_ERROR(check_range(offset, size));
  if (size == 0) {
    return FreeableBuffer(nullptr, 0, /*free_fn=*/nullptr);
  }
  void* data = ::operator new(size, std::align_val_t(alignment), std::nothrow);
  ET_CHECK_OR_RETURN_ERROR(data != nullptr, MemoryAllocationFailed,
                           "%s: no memory for %zu bytes at offset %zu", name(), size, offset);
  FreeableBuffer buffer(data, size, free_aligned, reinterpret_cast<void*>(alignment));
  ET_CHECK_OK_OR_RETURN_ERROR(read(offset, size, data));
  return buffer;
}

Result<FreeableBuffer> FileReader::load(size_t offset, size_t size, const SegmentInfo&) const {
  return file_.load(offset, size, alignment_);
}

Result<size_t> FileReader::size() const {
  return file_.size_if_open();
}

Error FileReader::load_into(size_t offset, size_t size, const SegmentInfo&, void* buffer) const {
  return file_.read(offset, size, buffer);
}

}  // namespace executorch::extension::internal
