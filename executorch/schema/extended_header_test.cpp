#include <executorch/schema/extended_header.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace executorch::schema {
namespace {

constexpr uint8_t kStart[8] = {0x1c, 0, 0, 0, 'E', 'T', '1', '2'};

std::vector<uint8_t> program_head(const ProgramHeader& header, size_t spliced = 32) {
  std::vector<uint8_t> bytes(128, 0xaa);
  write_head(kStart, spliced, header, bytes.data());
  return bytes;
}

TEST(ExtendedHeader, ProgramFieldsSurviveWritingAndParsing) {
  const auto bytes = program_head({0x650, 0x680, 60});
  EXPECT_EQ(bytes[0], 0x1c + 32);
  EXPECT_EQ(std::memcmp(bytes.data() + 4, "ET12eh00", 8), 0);
  EXPECT_EQ(bytes[12], 32);
  EXPECT_EQ(bytes[40], 0xaa);  // nothing is written behind the splice
  ProgramHeader parsed;
  ASSERT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Found);
  EXPECT_EQ(parsed.program_size, 0x650u);
  EXPECT_EQ(parsed.segment_base_offset, 0x680u);
  EXPECT_EQ(parsed.segment_data_size, 60u);
}

TEST(ExtendedHeader, WiderSplicePadsWithZerosAndMovesTheRoot) {
  const auto bytes = program_head({1, 2, 3}, 64);
  EXPECT_EQ(bytes[0], 0x1c + 64);
  for (size_t i = 40; i < 72; ++i) {
    EXPECT_EQ(bytes[i], 0) << i;
  }
  EXPECT_EQ(bytes[72], 0xaa);
}

TEST(ExtendedHeader, LengthTwentyFourHasNoSegmentDataSize) {
  auto bytes = program_head({100, 128, 7});
  bytes[12] = 24;
  ProgramHeader parsed;
  ASSERT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Found);
  EXPECT_EQ(parsed.segment_base_offset, 128u);
  EXPECT_EQ(parsed.segment_data_size, 0u);
}

TEST(ExtendedHeader, TooSmallLengthIsCorrupt) {
  auto bytes = program_head({100, 128, 7});
  bytes[12] = 23;
  ProgramHeader parsed;
  EXPECT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Corrupt);
}

TEST(ExtendedHeader, OtherMagicIsAbsentAndFewBytesAreShort) {
  auto bytes = program_head({100, 128, 7});
  ProgramHeader parsed;
  EXPECT_EQ(parse_header(bytes.data(), 63, parsed), HeaderStatus::Short);
  bytes[8] = 'x';
  EXPECT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Absent);
}

TEST(ExtendedHeader, FlatTensorFieldsSurviveWritingAndParsing) {
  constexpr uint8_t start[8] = {0x18, 0, 0, 0, 'F', 'T', '0', '1'};
  std::vector<uint8_t> bytes(64);
  write_head(start, kFlatTensorHeaderLength, FlatTensorHeader{48, 272, 384, 140}, bytes.data());
  EXPECT_EQ(bytes[0], 0x48);
  EXPECT_EQ(bytes[12], 40);
  FlatTensorHeader parsed;
  ASSERT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Found);
  EXPECT_EQ(parsed.flatbuffer_offset, 48u);
  EXPECT_EQ(parsed.flatbuffer_size, 272u);
  EXPECT_EQ(parsed.segment_base_offset, 384u);
  EXPECT_EQ(parsed.segment_data_size, 140u);
  bytes[12] = 39;
  EXPECT_EQ(parse_header(bytes.data(), bytes.size(), parsed), HeaderStatus::Corrupt);
}

TEST(ExtendedHeader, IdentifierTellsOtherVersionsFromOtherFiles) {
  EXPECT_EQ(check_identifier("....ET12", kProgramIdentifier), Identifier::Match);
  EXPECT_EQ(check_identifier("....ET11", kProgramIdentifier), Identifier::OtherVersion);
  EXPECT_EQ(check_identifier("....FT01", kProgramIdentifier), Identifier::Other);
}

}  // namespace
}  // namespace executorch::schema
