#pragma once

#include <string>
#include <string_view>

namespace executorch::devtools {

/// Writes a schema::OutputFile. Throws InspectError, which begins with the path.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace executorch::devtools
