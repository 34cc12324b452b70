#include <executorch/schema/output_file.h>

#include <cerrno>
#include <filesystem>

namespace executorch::schema {
namespace {

namespace fs = std::filesystem;

int failure() {
  return errno != 0 ? errno : EIO;
}

}  // namespace

OutputFile::~OutputFile() {
  (void)close();
  if (!temporary_.empty()) {
    std::remove(temporary_.c_str());
  }
}

int OutputFile::open(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  target_ = path;
  if (!fs::exists(status)) {
    return open_beside();
  }
  if (!fs::is_regular_file(status)) {
    file_ = std::fopen(path.c_str(), "wb");
    return file_ != nullptr ? 0 : failure();
  }
  target_ = fs::canonical(path, error).string();
  const int failed = error ? error.value() : open_beside();
  if (failed == 0) {
    fs::permissions(temporary_, status.permissions(), error);
  }
  return failed;
}

// Under a name that no other writer has.
int OutputFile::open_beside() {
  for (int n = 0; n < 1000; ++n) {
    std::string name = target_ + "." + std::to_string(n) + ".part";
    file_ = std::fopen(name.c_str(), "wbx");
    if (file_ != nullptr) {
      temporary_ = std::move(name);
      return 0;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  return failure();
}

int OutputFile::write(const void* data, size_t n_bytes) {
  errno = 0;
  return std::fwrite(data, 1, n_bytes, file_) == n_bytes ? 0 : failure();
}

int OutputFile::close() {
  std::FILE* const file = file_;
  file_ = nullptr;
  errno = 0;
  return file == nullptr || std::fclose(file) == 0 ? 0 : failure();
}

int OutputFile::keep() {
  if (const int failed = close()) {
    return failed;
  }
  if (temporary_.empty()) {
    return 0;
  }
  std::error_code error;
  fs::rename(temporary_, target_, error);
  if (!error) {
    temporary_.clear();
  }
  return error.value();
}

int write_file(const std::string& path, const void* data, size_t n_bytes) {
  OutputFile file;
  int failed = file.open(path);
  if (failed == 0) failed = file.write(data, n_bytes);
  return failed == 0 ? file.keep() : failed;
}

}  // namespace executorch::schema
