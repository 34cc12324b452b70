#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/output_file.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace executorch::devtools {

void write_file(const std::string& path, std::string_view bytes) {
  const std::string beside = path + "." + std::to_string(std::random_device{}()) + ".part";
  std::error_code error;
  {
    std::ofstream file(beside, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(beside, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(beside, ignored);
    throw InspectError{path + ": cannot be written"};
  }
}

}  // namespace executorch::devtools
