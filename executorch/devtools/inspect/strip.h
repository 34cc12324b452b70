#pragma once

#include <cstdint>
#include <string>

namespace executorch::devtools {

struct StripResult {
  /// Bytes of the file before and after; equal if there was nothing to remove.
  uint64_t before = 0;
  uint64_t after = 0;
};

/// Copies the program at `path` to `output` (which may be the same) without what says where its
/// instructions come from: the named data "executorch.debug_identity" and its segment. Everything
/// else keeps its bytes; segments behind it move. Throws InspectError, which begins with a path;
/// `output` is then as it was.
StripResult strip_program(const std::string& path, const std::string& output);

}  // namespace executorch::devtools
