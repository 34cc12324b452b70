#pragma once

namespace executorch::devtools {

/// Looks of a report, besides svg_style().
extern const char kPageStyle[];
/// Sorts and filters tables, and changes between light and dark.
extern const char kPageScript[];

}  // namespace executorch::devtools
