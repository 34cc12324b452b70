#pragma once

#include <string>
#include <string_view>

namespace executorch::devtools {

/// Writes a file completely or not at all: beside `path` first, which it then replaces. A symbolic
/// link stays one; devices and pipes are written to. Throws InspectError, which begins with the
/// path.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace executorch::devtools
