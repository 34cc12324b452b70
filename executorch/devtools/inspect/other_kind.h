#pragma once

#include <string>

namespace executorch::devtools {

/// For errors about a file that is no program: what it is, if that is known, and what reads it, as
/// "; it is an ETDump: ...". Else empty.
std::string other_kind(const std::string& path);

}  // namespace executorch::devtools
