#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace executorch {
namespace etdump {
namespace {

using runtime::Error;

TEST(BufferDataSink, BlobsAreAlignedFromTheStartAndPaddedWithZeros) {
  std::vector<uint8_t> memory(100, 0xee);
  auto sink = BufferDataSink::create({memory.data(), memory.size()}, 16);
  ASSERT_TRUE(sink.ok());
  EXPECT_EQ(sink->write("abc", 3).get(), 0u);
  EXPECT_EQ(sink->write("de", 2).get(), 16u);
  EXPECT_EQ(sink->get_used_bytes(), 18u);
  EXPECT_EQ(sink->get_storage_size().get(), 100u);
  EXPECT_EQ(std::string(memory.begin(), memory.begin() + 18),
            std::string("abc\0\0\0\0\0\0\0\0\0\0\0\0\0de", 18));
  EXPECT_EQ(memory[18], 0xee);
}

TEST(BufferDataSink, WhatDoesNotFitIsAnErrorAndChangesNothing) {
  uint8_t memory[70] = {};
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

TEST(BufferDataSink, NoBytesHaveNoPlace) {
  uint8_t memory[8];
  auto sink = BufferDataSink::create(memory, sizeof(memory));
  EXPECT_EQ(sink->write(nullptr, 0).get(), static_cast<size_t>(-1));
  EXPECT_EQ(sink->get_used_bytes(), 0u);
}

TEST(BufferDataSink, NeedsMemoryAndAPowerOfTwo) {
  uint8_t memory[8];
  EXPECT_EQ(BufferDataSink::create(nullptr, 8).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 0).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 8, 0).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink::create(memory, 8, 24).error(), Error::InvalidArgument);
  EXPECT_EQ(BufferDataSink().write("a", 1).error(), Error::OutOfResources);
}

TEST(FileDataSink, LaysBlobsOutAsMemoryDoes) {
  const std::string path = ::testing::TempDir() + "file_data_sink_test.bin";
  auto created = FileDataSink::create(path.c_str());
  ASSERT_TRUE(created.ok());
  FileDataSink sink = std::move(*created);
  EXPECT_EQ(sink.write("abc", 3).get(), 0u);
  EXPECT_EQ(sink.write(nullptr, 0).get(), static_cast<size_t>(-1));
  EXPECT_EQ(sink.write("de", 2).get(), 64u);
  EXPECT_EQ(sink.get_used_bytes(), 66u);
  sink.close();
  EXPECT_EQ(sink.write("f", 1).error(), Error::AccessFailed);
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(content, "abc" + std::string(61, '\0') + "de");
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

TEST(FileDataSink, APathThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(FileDataSink::create("/nowhere/at/all").error(), Error::AccessFailed);
}

}  // namespace
}  // namespace etdump
}  // namespace executorch
