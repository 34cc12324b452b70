#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace executorch::etdump {
namespace {

using runtime::Error;

TEST(BufferDataSink, BlobsAreAlignedInMemoryAndPaddedWithZeros) {
  alignas(16) char memory[100];
  std::memset(memory, 'x', sizeof(memory));
  auto sink = BufferDataSink::create(memory + 15, 85, 16);
  ASSERT_TRUE(sink.ok());
  EXPECT_EQ(sink->write("abc", 3).get(), 1u);
  EXPECT_EQ(sink->write("de", 2).get(), 17u);
  EXPECT_EQ(sink->get_used_bytes(), 19u);
  EXPECT_EQ(sink->get_storage_size().get(), 85u);
  EXPECT_EQ(std::string(memory + 14, 21), std::string("x\0abc\0\0\0\0\0\0\0\0\0\0\0\0\0dex", 21));
}

TEST(BufferDataSink, WhatDoesNotFitIsAnErrorAndChangesNothing) {
  alignas(64) uint8_t memory[70] = {};
  auto sink = BufferDataSink::create(memory, sizeof(memory));
  ASSERT_TRUE(sink.ok());
  const std::vector<uint8_t> bytes(100, 1);
  EXPECT_EQ(sink->write(bytes.data(), 71).error(), Error::OutOfResources);
  EXPECT_EQ(sink->write(bytes.data(), 6).get(), 0u);
  EXPECT_EQ(sink->write(bytes.data(), 7).error(), Error::OutOfResources);
  EXPECT_EQ(sink->write(bytes.data(), 6).get(), 64u);
  EXPECT_EQ(sink->write(bytes.data(), 1).error(), Error::OutOfResources);
  EXPECT_EQ(sink->get_used_bytes(), 70u);
}

TEST(BufferDataSink, NoBytesAreAtTheEnd) {
  alignas(64) uint8_t memory[8];
  auto sink = BufferDataSink::create(memory, sizeof(memory));
  EXPECT_EQ(sink->write(nullptr, 0).get(), 0u);
  EXPECT_EQ(sink->write("abc", 3).get(), 0u);
  EXPECT_EQ(sink->write(nullptr, 0).get(), 3u);
  EXPECT_EQ(sink->get_used_bytes(), 3u);
}

TEST(BufferDataSink, NullStandsForZeros) {
  alignas(64) char memory[6] = {'a', 'b', 'c', 'd', 'e', 'f'};
  auto sink = BufferDataSink::create(memory, sizeof(memory), 2);
  EXPECT_EQ(sink->write("x", 1).get(), 0u);
  EXPECT_EQ(sink->write(nullptr, 3).get(), 2u);
  EXPECT_EQ(std::string(memory, 6), std::string("x\0\0\0\0f", 6));
}

TEST(BufferDataSink, NeedsMemoryAndAPowerOfTwo) {
  uint8_t memory[8];
  EXPECT_EQ(BufferDataSink::create(nullptr, 8).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 0).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 8, 0).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 8, 24).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink().write("a", 1).error(), Error::OutOfResources);
}

TEST(FileDataSink, BlobsLieBehindEachOther) {
  const std::string path = ::testing::TempDir() + "file_data_sink_test.bin";
  auto created = FileDataSink::create(path.c_str());
  ASSERT_TRUE(created.ok());
  FileDataSink sink = std::move(*created);
  EXPECT_EQ(sink.write("abc", 3).get(), 0u);
  EXPECT_EQ(sink.write(nullptr, 0).get(), 3u);
  EXPECT_EQ(sink.write("de", 2).get(), 3u);
  EXPECT_EQ(sink.get_used_bytes(), 5u);
  sink.close();
  EXPECT_EQ(sink.write("f", 1).error(), Error::AccessFailed);
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(content, "abcde");
  std::remove(path.c_str());
}

TEST(FileDataSink, WhatWasThereStaysUntilItIsClosed) {
  const std::string path = ::testing::TempDir() + "file_data_sink_test_old.bin";
  std::ofstream(path) << "old";
  const auto content = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  {
    auto sink = FileDataSink::create(path.c_str());
    ASSERT_TRUE(sink.ok());
    ASSERT_TRUE(sink->write("new", 3).ok());
    EXPECT_EQ(content(), "old");
  }
  EXPECT_EQ(content(), "new");
  std::remove(path.c_str());
}

TEST(FileDataSink, NullStandsForZeros) {
  const std::string path = ::testing::TempDir() + "file_data_sink_test_zeros.bin";
  {
    auto sink = FileDataSink::create(path.c_str());
    ASSERT_TRUE(sink.ok());
    EXPECT_EQ(sink->write("a", 1).get(), 0u);
    EXPECT_EQ(sink->write(nullptr, 5000).get(), 1u);
    EXPECT_EQ(sink->get_used_bytes(), 5001u);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(content, "a" + std::string(5000, '\0'));
  std::remove(path.c_str());
}

TEST(FileDataSink, APathThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(FileDataSink::create("/nowhere/at/all").error(), Error::AccessFailed);
  EXPECT_EQ(FileDataSink::create("").error(), Error::AccessFailed);
}

}  // namespace
}  // namespace executorch::etdump
