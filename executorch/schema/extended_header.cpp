#include <executorch/schema/extended_header.h>

#include <cstring>

namespace executorch::schema {
namespace {

constexpr size_t kIdentifierOffset = 4;
constexpr size_t kHeaderOffset = 8;
constexpr char kProgramMagic[] = "eh00";
constexpr char kFlatTensorMagic[] = "FH01";
constexpr size_t kMagicBytes = 4;
constexpr uint32_t kProgramMinLength = 24;  // before segment_data_size was added
constexpr uint32_t kProgramLength = 32;
constexpr uint32_t kFlatTensorLength = 40;

// Byte by byte, so that neither the host's byte order nor alignment matters.
uint64_t read_le(const uint8_t* bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

uint8_t* write_le(uint8_t* out, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
  return out + count;
}

// Finds the header and hands back the bytes behind its length field.
HeaderStatus find(const void* head, size_t size, const char* magic, uint32_t min_length,
                  const uint8_t*& fields, uint32_t& length) {
  if (size < kHeadBytes) return HeaderStatus::Short;
  const uint8_t* bytes = static_cast<const uint8_t*>(head) + kHeaderOffset;
  if (std::memcmp(bytes, magic, kMagicBytes) != 0) return HeaderStatus::Absent;
  length = static_cast<uint32_t>(read_le(bytes + kMagicBytes, 4));
  fields = bytes + kMagicBytes + 4;
  return length < min_length ? HeaderStatus::Corrupt : HeaderStatus::Found;
}

uint8_t* write_prefix(const uint8_t* flatbuffer, size_t spliced, const char* magic, uint32_t length,
                      uint8_t* out) {
  std::memset(out, 0, kHeaderOffset + spliced);
  out = write_le(out, read_le(flatbuffer, 4) + spliced, 4);
  std::memcpy(out, flatbuffer + kIdentifierOffset, kMagicBytes);
  std::memcpy(out + kMagicBytes, magic, kMagicBytes);
  return write_le(out + 2 * kMagicBytes, length, 4);
}

}  // namespace

Identifier check_identifier(const void* head, const char* expected) {
  const uint8_t* found = static_cast<const uint8_t*>(head) + kIdentifierOffset;
  if (std::memcmp(found, expected, 4) == 0) return Identifier::Match;
  return std::memcmp(found, expected, 2) == 0 ? Identifier::OtherVersion : Identifier::Other;
}

HeaderStatus parse_header(const void* head, size_t size, ProgramHeader& out) {
  const uint8_t* fields = nullptr;
  uint32_t length = 0;
  const HeaderStatus status = find(head, size, kProgramMagic, kProgramMinLength, fields, length);
  if (status == HeaderStatus::Found) {
    out.program_size = read_le(fields, 8);
    out.segment_base_offset = read_le(fields + 8, 8);
    out.segment_data_size = length >= kProgramLength ? read_le(fields + 16, 8) : 0;
  }
  return status;
}

HeaderStatus parse_header(const void* head, size_t size, FlatTensorHeader& out) {
  const uint8_t* fields = nullptr;
  uint32_t length = 0;
  const HeaderStatus status = find(head, size, kFlatTensorMagic, kFlatTensorLength, fields, length);
  if (status == HeaderStatus::Found) {
    out.flatbuffer_offset = read_le(fields, 8);
    out.flatbuffer_size = read_le(fields + 8, 8);
    out.segment_base_offset = read_le(fields + 16, 8);
    out.segment_data_size = read_le(fields + 24, 8);
  }
  return status;
}

void write_head(const uint8_t* flatbuffer, size_t spliced, const ProgramHeader& header,
                uint8_t* out) {
  out = write_prefix(flatbuffer, spliced, kProgramMagic, kProgramLength, out);
  out = write_le(out, header.program_size, 8);
  out = write_le(out, header.segment_base_offset, 8);
  write_le(out, header.segment_data_size, 8);
}

void write_head(const uint8_t* flatbuffer, size_t spliced, const FlatTensorHeader& header,
                uint8_t* out) {
  out = write_prefix(flatbuffer, spliced, kFlatTensorMagic, kFlatTensorLength, out);
  out = write_le(out, header.flatbuffer_offset, 8);
  out = write_le(out, header.flatbuffer_size, 8);
  out = write_le(out, header.segment_base_offset, 8);
  write_le(out, header.segment_data_size, 8);
}

}  // namespace executorch::schema
