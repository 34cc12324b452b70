#include <executorch/extension/llm/runner/wav_loader.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

using namespace executorch::extension::llm;

namespace {

std::string little_endian(uint64_t value, size_t n_bytes) {
  std::string bytes;
  for (size_t i = 0; i < n_bytes; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  return bytes;
}

std::string chunk(const std::string& id, const std::string& data) {
  return id + little_endian(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}

std::string format_chunk(uint16_t format, uint16_t bits, uint16_t channels = 1,
                         const std::string& extension = "") {
  const uint32_t frame = bits / 8u * channels;
  return chunk("fmt ", little_endian(format, 2) + little_endian(channels, 2) +
                           little_endian(16000, 4) + little_endian(16000 * frame, 4) +
                           little_endian(frame, 2) + little_endian(bits, 2) + extension);
}

std::string riff(const std::string& chunks) {
  return "RIFF" + little_endian(chunks.size() + 4, 4) + "WAVE" + chunks;
}

/// 22 more bytes of an extensible format: valid bits, speakers, and a subformat.
std::string extension_of(uint16_t format) {
  return little_endian(22, 2) + little_endian(24, 2) + little_endian(4, 4) +
         little_endian(format, 2) + std::string("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
}

std::unique_ptr<WavHeader> header_of(const std::string& bytes) {
  return load_wav_header(bytes.data(), bytes.size());
}

class Wav : public testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }
  void TearDown() override { std::filesystem::remove(path_); }

  std::vector<float> samples_of(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return load_wav_audio_data(path_);
  }
  std::string samples(const std::vector<int64_t>& values, size_t n_bytes) {
    std::string data;
    for (const int64_t value : values) data += little_endian(static_cast<uint64_t>(value), n_bytes);
    return chunk("data", data);
  }

  std::string path_ = testing::TempDir() + "wav_loader_test_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() + ".wav";
};

TEST_F(Wav, HeaderSaysWhatTheFileSays) {
  const auto header = header_of(riff(format_chunk(1, 16, 2) + samples({1, 2, 3, 4}, 2)));
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(std::memcmp(header->RIFF, "RIFF", 4), 0);
  EXPECT_EQ(std::memcmp(header->WAVE, "WAVE", 4), 0);
  EXPECT_EQ(std::memcmp(header->fmt, "fmt ", 4), 0);
  EXPECT_EQ(header->ChunkSize, 44u);
  EXPECT_EQ(header->Subchunk1Size, 16u);
  EXPECT_EQ(header->AudioFormat, kWavFormatPcm);
  EXPECT_EQ(header->NumOfChan, 2);
  EXPECT_EQ(header->SamplesPerSec, 16000u);
  EXPECT_EQ(header->bytesPerSec, 64000u);
  EXPECT_EQ(header->blockAlign, 4);
  EXPECT_EQ(header->bitsPerSample, 16);
  EXPECT_EQ(header->dataOffset, 44u);
  EXPECT_EQ(header->Subchunk2Size, 8u);
}

TEST_F(Wav, SamplesOfEveryWidth) {
  EXPECT_EQ(samples_of(riff(format_chunk(1, 16) + samples({0, 32767, -32768, -1}, 2))),
            (std::vector<float>{0, 1, static_cast<float>(-32768 * double{kOneOverShortMax}),
                                static_cast<float>(-1 * double{kOneOverShortMax})}));
  EXPECT_EQ(samples_of(riff(format_chunk(1, 24) + samples({0, 8388607, -8388608, -1}, 3))),
            (std::vector<float>{0, 1, static_cast<float>(-8388608.0 / 8388607),
                                static_cast<float>(-1.0 / 8388607)}));
  const auto wide = samples_of(riff(format_chunk(1, 32) + samples({0, INT32_MAX, INT32_MIN}, 4)));
  ASSERT_EQ(wide.size(), 3u);
  EXPECT_FLOAT_EQ(wide[1], 1.0f);
  EXPECT_FLOAT_EQ(wide[2], -1.0f);
  EXPECT_EQ(samples_of(riff(format_chunk(3, 32) + samples({0x3F000000, 0xC0000000}, 4))),
            (std::vector<float>{0.5f, -2.0f}));
}

TEST_F(Wav, ExtensibleFilesHaveTheirSubformat) {
  const auto file = riff(format_chunk(0xFFFE, 24, 1, extension_of(1)) + samples({8388607}, 3));
  EXPECT_EQ(header_of(file)->AudioFormat, kWavFormatPcm);
  EXPECT_EQ(samples_of(file), std::vector<float>{1});
  const auto floats = riff(format_chunk(0xFFFE, 32, 1, extension_of(3)) + samples({0x3F800000}, 4));
  EXPECT_EQ(samples_of(floats), std::vector<float>{1});
  std::string other = extension_of(1);
  other.back() = 'x';
  EXPECT_EQ(header_of(riff(format_chunk(0xFFFE, 16, 1, other) + samples({1}, 2)))->AudioFormat,
            0xFFFE);
  EXPECT_TRUE(samples_of(riff(format_chunk(0xFFFE, 16) + samples({1}, 2))).empty());
}

TEST_F(Wav, OtherChunksArePassedOver) {
  const std::string sound = samples({32767}, 2);
  // Chunks of odd length have a byte behind them; "data" inside of one is not the samples.
  const auto file = riff(chunk("LIST", "odd") + format_chunk(1, 16) +
                         chunk("junk", "data\4\0\0\0x") + sound + chunk("id3 ", "y"));
  EXPECT_EQ(samples_of(file), std::vector<float>{1});
  const auto after = riff(format_chunk(1, 16) + chunk("LIST", "abc") + sound);
  EXPECT_EQ(samples_of(after), std::vector<float>{1});
}

TEST_F(Wav, StreamsEndWhereTheyEnd) {
  std::string file = riff(format_chunk(1, 16) + samples({1, 2, 3}, 2));
  file.replace(4, 4, little_endian(UINT32_MAX, 4));
  file.replace(40, 4, little_endian(UINT32_MAX, 4));
  EXPECT_EQ(header_of(file)->Subchunk2Size, UINT32_MAX);
  EXPECT_EQ(samples_of(file).size(), 3u);
  file.replace(40, 4, little_endian(UINT32_MAX - 1, 4));
  EXPECT_TRUE(samples_of(file).empty());
}

TEST_F(Wav, WhatIsNoSoundIsNullOrEmpty) {
  EXPECT_EQ(load_wav_header(nullptr, 0), nullptr);
  EXPECT_EQ(header_of("not a wav file"), nullptr);
  EXPECT_EQ(header_of(riff("")), nullptr);
  EXPECT_EQ(header_of(riff(samples({1}, 2) + format_chunk(1, 16))), nullptr);
  EXPECT_EQ(header_of(riff(chunk("fmt ", "too short") + samples({1}, 2))), nullptr);
  // A chunk of 2^32 - 1 bytes.
  EXPECT_EQ(header_of(riff("LIST" + little_endian(UINT32_MAX, 4) + format_chunk(1, 16))), nullptr);
  EXPECT_EQ(header_of(riff("fmt " + little_endian(UINT32_MAX, 4) + std::string(40, '\1'))),
            nullptr);
  EXPECT_EQ(load_wav_header(path_ + ".missing"), nullptr);
  EXPECT_TRUE(load_wav_audio_data(path_ + ".missing").empty());
  EXPECT_TRUE(load_wav_audio_data(testing::TempDir()).empty());
  for (const auto& [format, bits] : {std::pair<int, int>{6, 16}, {1, 8}, {3, 64}, {1, 0}}) {
    const auto file = riff(
        format_chunk(static_cast<uint16_t>(format), static_cast<uint16_t>(bits)) + samples({1}, 2));
    EXPECT_NE(header_of(file), nullptr);
    EXPECT_TRUE(samples_of(file).empty());
  }
}

TEST_F(Wav, CutFilesAreEmpty) {
  const std::string file = riff(chunk("LIST", "odd") +
                                format_chunk(0xFFFE, 24, 1, extension_of(1)) + samples({1, 2}, 3));
  ASSERT_EQ(samples_of(file).size(), 2u);
  for (size_t n = 0; n < file.size(); ++n) EXPECT_TRUE(samples_of(file.substr(0, n)).empty()) << n;
}

TEST_F(Wav, DamagedFilesNeverCrash) {
  const std::string file = riff(chunk("LIST", "odd") +
                                format_chunk(0xFFFE, 24, 1, extension_of(1)) + samples({1, 2}, 3));
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = file;
    for (int i = 0; i < 3; ++i) damaged[random() % file.size()] = static_cast<char>(random());
    const auto header = header_of(damaged);
    if (header != nullptr) {
      EXPECT_LE(header->dataOffset, damaged.size());
    }
    EXPECT_LE(samples_of(damaged).size(), damaged.size());
  }
}

}  // namespace
