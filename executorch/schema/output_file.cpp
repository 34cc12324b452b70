#include <executorch/schema/output_file.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace executorch::schema {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 1000;
constexpr mode_t kNewFile = 0666;

int failure() {
  return errno != 0 ? errno : EIO;
}

/// A file without a name, on the file system of `target`; -1 where there is no such thing, or none
/// that could be given a name later.
int open_unnamed(const std::string& target) {
#ifdef O_TMPFILE
  const fs::path folder = fs::path(target).parent_path();
  if (::access("/proc/self/fd", X_OK) == 0) {
    return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC,
                  kNewFile);
  }
#endif
  (void)target;
  return -1;
}

bool is_same_file(int fd, const char* name) {
  struct stat held, named;
  return ::fstat(fd, &held) == 0 && ::lstat(name, &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

/// Whether `name` is free now, having been the file of a writer that is gone: one that lives holds
/// the lock. Whoever has the lock of a file that still has the name is the only one to remove it.
bool remove_abandoned(const char* name) {
  const int fd = ::open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return false;
  struct stat status;
  const bool abandoned = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                         ::flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(fd, name);
  const bool removed = abandoned && ::unlink(name) == 0;
  ::close(fd);
  return removed;
}

}  // namespace

OutputFile::~OutputFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
  (void)close();
}

int OutputFile::open(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  target_ = path;
  if (path.empty()) return ENOENT;
  if (path.find('\0') != path.npos) return EINVAL;
  if (!fs::exists(status)) return open_aside();
  if (!fs::is_regular_file(status)) {
    file_ = std::fopen(path.c_str(), "wb");
    return file_ != nullptr ? 0 : failure();
  }
  target_ = fs::canonical(path, error).string();
  const int failed = error ? error.value() : open_aside();
  if (failed == 0) (void)::fchmod(::fileno(file_), static_cast<mode_t>(status.permissions()));
  return failed;
}

int OutputFile::open_aside() {
  is_aside_ = true;
  const int unnamed = may_be_unnamed_ ? open_unnamed(target_) : -1;
  if (unnamed >= 0) {
    (void)::flock(unnamed, LOCK_EX | LOCK_NB);
    return take(unnamed);
  }
  return make_beside([this](const std::string& name) {
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFile);
    if (fd < 0) return failure();
    // Before it was locked it looked like abandoned.
    (void)::flock(fd, LOCK_EX);
    if (is_same_file(fd, name.c_str())) return take(fd);
    ::close(fd);
    return EEXIST;
  });
}

int OutputFile::take(int fd) {
  file_ = ::fdopen(fd, "wb");
  if (file_ != nullptr) return 0;
  const int failed = failure();
  ::close(fd);
  return failed;
}

/// Calls make(name) with names beside the target until one is free, and remembers that.
template <class Make>
int OutputFile::make_beside(Make make) {
  for (int n = 0; n < kMostNames; ++n) {
    std::string name = target_ + "." + std::to_string(n) + ".part";
    int failed = make(name);
    if (failed == EEXIST && remove_abandoned(name.c_str())) failed = make(name);
    if (failed == 0) {
      temporary_ = std::move(name);
      return 0;
    }
    if (failed != EEXIST) return failed;
  }
  return EEXIST;
}

int OutputFile::write(const void* data, size_t n_bytes) {
  errno = 0;
  if (n_bytes == 0) return 0;  // and data may be null
  return std::fwrite(data, 1, n_bytes, file_) == n_bytes ? 0 : failure();
}

int OutputFile::close() {
  std::FILE* const file = file_;
  file_ = nullptr;
  errno = 0;
  return file == nullptr || std::fclose(file) == 0 ? 0 : failure();
}

int OutputFile::link_to(const std::string& path) const {
  const std::string opened = "/proc/self/fd/" + std::to_string(::fileno(file_));
  return ::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0
             ? 0
             : failure();
}

int OutputFile::keep() {
  if (!is_aside_) return close();
  errno = 0;
  if (std::fflush(file_) != 0) return failure();
  // Remote file systems say when a descriptor is closed what they could not write; the lock stays.
  const int copy = ::dup(::fileno(file_));
  if (copy < 0 || ::close(copy) != 0) return failure();
  if (temporary_.empty()) {
    int failed = link_to(target_);
    if (failed == EEXIST) {
      failed = make_beside([this](const std::string& name) { return link_to(name); });
    }
    if (failed != 0 || temporary_.empty()) return failed;
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return failure();
  temporary_.clear();
  return 0;
}

int write_file(const std::string& path, const void* data, size_t n_bytes) {
  OutputFile file;
  int failed = file.open(path);
  if (failed == 0) failed = file.write(data, n_bytes);
  return failed == 0 ? file.keep() : failed;
}

}  // namespace executorch::schema
