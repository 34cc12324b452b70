#pragma once

#include <nanobind/nanobind.h>

namespace executorch::exir {

/// The schema Program of a .pte file, without segment data: what the flatbuffer holds, as
/// dataclasses. Returns (program, segment base offset).
/// Throws ValueError for bytes that are no program or a damaged one.
nanobind::tuple read_program(nanobind::handle file);

/// The entries of a .ptd file: a dict of key to (layout, data), where layout is
/// (scalar type, sizes, dim order) or None and data a bytes object.
/// Throws ValueError for bytes that are no such file or a damaged one.
nanobind::dict read_flat_tensor(nanobind::handle file);

}  // namespace executorch::exir
