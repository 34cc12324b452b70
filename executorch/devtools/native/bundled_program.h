#pragma once

#include <nanobind/nanobind.h>

namespace executorch::devtools {

/// The BundledProgram (executorch.devtools.bundled_program.schema) that a .bpte file holds.
/// Throws ValueError: none, or a damaged one, with the place in it.
nanobind::object read_bundled_program(nanobind::handle source);

/// The .bpte file of a BundledProgram.
/// Throws OverflowError for a number that its field cannot hold, ValueError for an unknown kind of
/// value.
nanobind::bytes write_bundled_program(nanobind::handle bundle);

}  // namespace executorch::devtools
