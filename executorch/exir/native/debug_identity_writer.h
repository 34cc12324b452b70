#pragma once

#include <nanobind/nanobind.h>

namespace executorch::exir {

/// The bytes of `schema/debug_identity.fbs`.
///   strings  list of str
///   places   buffer of uint32: module path, file, line of each
///   methods  [(name, [(origins, [(instruction, by_id, by_name)]) for each chain], inputs, outputs,
///            is_stateless)], where origins is a buffer of uint32, operator and place of each
///            instruction, by_id and by_name are buffers of uint32, id, operator and place inside a
///            delegate, and inputs and outputs are buffers of uint32, strings
/// ValueError for a buffer that ends inside an entry. Indices are not checked: readers do.
nanobind::bytes write_debug_identity(nanobind::handle strings, nanobind::handle places,
                                     nanobind::handle methods);

}  // namespace executorch::exir
