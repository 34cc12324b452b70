#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/schema/output_file.h>

#include <cstring>

namespace executorch::devtools {

void write_file(const std::string& path, std::string_view bytes) {
  if (const int error = schema::write_file(path, bytes.data(), bytes.size())) {
    throw InspectError{path + ": cannot be written: " + std::strerror(error)};
  }
}

}  // namespace executorch::devtools
