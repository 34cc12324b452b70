#pragma once

#include <executorch/runtime/core/error.h>

#include <cstddef>
#include <cstdint>

namespace executorch_flatbuffer {
struct ExecutionPlan;
struct Program;
}  // namespace executorch_flatbuffer

namespace executorch::runtime::internal {

/// The file that a program's flatbuffer came in.
struct ProgramFile {
  size_t file_bytes;
  /// Bytes of the flatbuffer, from byte 0 of the file.
  size_t program_bytes;
  /// File offset of segment data; 0 if there is none.
  uint64_t segment_base;
  /// Bytes of segment data; 0 if the header does not say.
  uint64_t segment_bytes;
};

/// Decides, once, whether `data` (file.program_bytes bytes, 16-byte aligned) is a program that the
/// executor can trust from then on: the structure of the flatbuffer, and what it means: every
/// index, offset, size product, enum and type that is used without a check later. What is wrong
/// is logged with its place, such as "forward: instruction 3, argument 2: ...".
/// Time and memory are linear in program_bytes whatever the bytes are; segments are not read.
/// Returns InvalidProgram, or Ok.
ET_NODISCARD Error validate_program(const void* data, const ProgramFile& file);

}  // namespace executorch::runtime::internal
