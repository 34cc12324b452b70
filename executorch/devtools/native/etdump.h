#pragma once

#include <nanobind/nanobind.h>

namespace executorch::devtools {

/// The ETDumpFlatCC (executorch.devtools.etdump.schema_flatcc) that `source`, an object with the
/// buffer protocol, holds. Everything is verified first.
/// Throws ValueError: no ETDump, cut off or damaged, with the place in it.
nanobind::object read_etdump(nanobind::handle source, bool size_prefixed);

/// The bytes of an ETDumpFlatCC.
/// Throws OverflowError for a number that its field cannot hold, ValueError for an unknown kind of
/// value.
nanobind::bytes write_etdump(nanobind::handle etdump, bool size_prefixed);

}  // namespace executorch::devtools
