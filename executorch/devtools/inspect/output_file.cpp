#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/output_file.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace executorch::devtools {
namespace {

namespace fs = std::filesystem;

bool write(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

bool replace(const fs::path& path, std::string_view bytes) {
  const fs::path beside = path.string() + "." + std::to_string(std::random_device{}()) + ".part";
  std::error_code error;
  if (write(beside, bytes)) {
    const fs::file_status replaced = fs::status(path, error);
    if (fs::exists(replaced)) fs::permissions(beside, replaced.permissions(), error);
    fs::rename(beside, path, error);
    if (!error) return true;
  }
  fs::remove(beside, error);
  return false;
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool exists = fs::exists(status);
  const bool done = exists && !fs::is_regular_file(status) ? write(path, bytes)
                    : exists ? replace(fs::canonical(path, error), bytes)
                             : replace(path, bytes);
  if (!done) throw InspectError{path + ": cannot be written"};
}

}  // namespace executorch::devtools
