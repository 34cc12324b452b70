#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::schema {

/// True if `size` bytes at `data`, a multiple of 16, are a flatbuffer of program.fbs: every table,
/// vector and string that a Program leads to lies within the bytes, on a multiple of its items'
/// size, and strings end with a zero byte. Values of fields are not checked.
///   max_depth   tables may be nested so deeply
///   max_tables  a table counts as often as it is referred to
/// Accepts no more than the verifier that flatc generates, by one walk over a table of the schema
/// instead of a function for each table.
bool is_program_structure(const uint8_t* data, size_t size, uint32_t max_depth,
                          uint32_t max_tables);

}  // namespace executorch::schema
