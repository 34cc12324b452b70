#pragma once

#include <cstddef>
#include <cstdint>

/// The fixed headers that programs and external data files carry inside their flatbuffer, spliced
/// in behind the root offset and the file identifier. All integers are little endian.
///
///   byte 0  u32 root table offset, counting the spliced bytes
///   byte 4  file identifier, "ET12" (program) or "FT01" (external data)
///   byte 8  header magic, "eh00" or "FH01", and the header
///   ...     the flatbuffer's bytes from 8 on, then zero padding, then segments
///
/// Pure functions of bytes: nothing is allocated, no pointer is kept.
namespace executorch::schema {

/// Bytes a reader fetches to find either header; shorter files are neither.
constexpr size_t kHeadBytes = 64;
constexpr char kProgramIdentifier[] = "ET12";
constexpr char kFlatTensorIdentifier[] = "FT01";
/// Bytes that the writers splice in, if alignment asks for no more.
constexpr size_t kProgramHeaderLength = 32;
constexpr size_t kFlatTensorHeaderLength = 48;

enum class HeaderStatus : uint8_t {
  Found,
  Absent,   ///< The magic is another: a program that is a bare flatbuffer.
  Corrupt,  ///< The magic is there, the length is too small.
  Short,    ///< Too few bytes to tell.
};

/// What kind of file the identifier at byte 4 announces.
enum class Identifier : uint8_t {
  Match,
  OtherVersion,  ///< Same two letters, other version digits.
  Other,
};

/// `eh00`: u32 length (32; at least 24 is accepted, later fields are ignored), then the fields.
struct ProgramHeader {
  /// Flatbuffer bytes from byte 0, header included, padding before the segments excluded.
  uint64_t program_size = 0;
  /// File offset of the segments; 0 means there are none.
  uint64_t segment_base_offset = 0;
  /// Bytes from the first segment to the end of the last; 0 if the header does not say.
  uint64_t segment_data_size = 0;
};

/// `FH01`: u32 length (40, more is accepted), then the fields.
struct FlatTensorHeader {
  /// Spliced bytes; the flatbuffer ends at flatbuffer_offset + flatbuffer_size.
  uint64_t flatbuffer_offset = 0;
  /// Flatbuffer bytes without the splice.
  uint64_t flatbuffer_size = 0;
  uint64_t segment_base_offset = 0;
  uint64_t segment_data_size = 0;
};

/// Compares bytes 4 to 7 of `head` with `expected`, one of the identifiers above.
/// Needs 8 bytes at `head`.
Identifier check_identifier(const void* head, const char* expected);

/// Reads the header at byte 8 of a file's first `size` bytes (kHeadBytes are enough); writes `out`
/// if Found.
HeaderStatus parse_header(const void* head, size_t size, ProgramHeader& out);
HeaderStatus parse_header(const void* head, size_t size, FlatTensorHeader& out);

/// Writes what replaces the first 8 bytes of a finished flatbuffer: root offset, identifier, header
/// and zeros. `flatbuffer` holds those 8 bytes, `out` has room for 8 + spliced bytes. `spliced` is
/// a multiple of the largest alignment in the flatbuffer and at least k...HeaderLength.
void write_head(const uint8_t* flatbuffer, size_t spliced, const ProgramHeader& header,
                uint8_t* out);
void write_head(const uint8_t* flatbuffer, size_t spliced, const FlatTensorHeader& header,
                uint8_t* out);

}  // namespace executorch::schema
