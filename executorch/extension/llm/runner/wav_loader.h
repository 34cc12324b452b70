/// Sound files: RIFF/WAVE with samples of 16, 24 or 32 bits, or floats.
///
/// What cannot be read is null or empty, with the cause in the log. There is no source to link but
/// the runtime's log.
#pragma once

#include <executorch/runtime/platform/log.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace executorch::extension::llm {

constexpr uint16_t kWavFormatPcm = 0x0001;
constexpr uint16_t kWavFormatIeeeFloat = 0x0003;

constexpr float kOneOverIntMax = 1 / static_cast<float>(INT32_MAX);
constexpr float kOneOverShortMax = 1 / static_cast<float>(INT16_MAX);

/// The first chunk, "fmt " and where "data" lies.
struct WavHeader {
  uint8_t RIFF[4];
  uint32_t ChunkSize;
  uint8_t WAVE[4];
  uint8_t fmt[4];
  uint32_t Subchunk1Size;
  /// kWavFormat...; of an extensible file, what its subformat says.
  uint16_t AudioFormat;
  uint16_t NumOfChan;
  uint32_t SamplesPerSec;
  uint32_t bytesPerSec;
  uint16_t blockAlign;
  uint16_t bitsPerSample;
  /// The place of the first sample, in bytes from the beginning of the file.
  uint32_t dataOffset;
  /// Bytes of samples, as the file says it: 2^32 - 1 of one that was written as a stream.
  uint32_t Subchunk2Size;
};

namespace detail {

inline uint16_t read_le16(const char* p) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  return static_cast<uint16_t>(byte(0) | byte(1) << 8);
}

inline uint32_t read_le32(const char* p) {
  return static_cast<uint32_t>(read_le16(p)) | static_cast<uint32_t>(read_le16(p + 2)) << 16;
}

/// Empty for what cannot be read, and for more than a RIFF file can have.
inline std::vector<char> read_file(const std::string& fp) {
  constexpr size_t kPart = size_t{1} << 16;
  constexpr uint64_t kMost = (uint64_t{1} << 32) + 8;
  std::vector<char> bytes;
  std::ifstream file(fp, std::ios::binary);
  while (file.good()) {
    const size_t size = bytes.size();
    if (size > kMost) return {};
    bytes.resize(size + kPart);
    file.read(bytes.data() + size, static_cast<std::streamsize>(kPart));
    bytes.resize(size + static_cast<size_t>(file.gcount()));
  }
  return bytes;
}

/// Reads the chunk "fmt ", of at least 16 bytes.
inline void read_wav_format(const char* chunk, uint32_t size, WavHeader& header) {
  constexpr uint16_t kExtensible = 0xFFFE;
  // What follows the format in the identifier of a subformat.
  constexpr unsigned char kSubformat[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                            0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
  std::memcpy(header.fmt, chunk, 4);
  header.Subchunk1Size = size;
  const char* const values = chunk + 8;
  header.AudioFormat = read_le16(values);
  header.NumOfChan = read_le16(values + 2);
  header.SamplesPerSec = read_le32(values + 4);
  header.bytesPerSec = read_le32(values + 8);
  header.blockAlign = read_le16(values + 12);
  header.bitsPerSample = read_le16(values + 14);
  if (header.AudioFormat == kExtensible && size >= 40 &&
      std::memcmp(values + 26, kSubformat, sizeof(kSubformat)) == 0) {
    header.AudioFormat = read_le16(values + 24);
  }
}

/// A sample of 16, 24 or 32 bits.
inline float read_pcm_sample(const char* p, int bits) {
  constexpr double kOneOver24BitMax = 1.0 / ((1 << 23) - 1);
  if (bits == 16) {
    return static_cast<float>(static_cast<int16_t>(read_le16(p)) * double{kOneOverShortMax});
  }
  if (bits == 32) {
    return static_cast<float>(static_cast<int32_t>(read_le32(p)) * double{kOneOverIntMax});
  }
  const uint32_t high = static_cast<unsigned char>(p[2]);
  const auto value = static_cast<int32_t>(high << 24 | uint32_t{read_le16(p)} << 8) / 256;
  return static_cast<float>(value * kOneOver24BitMax);
}

inline float read_float_sample(const char* p) {
  const uint32_t bits = read_le32(p);
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace detail

/// Null if the bytes are no RIFF/WAVE file with a format and samples behind it. Where the samples
/// end is not looked at.
inline std::unique_ptr<WavHeader> load_wav_header(const char* data, size_t data_size) {
  if (data == nullptr || data_size < 12 || std::memcmp(data, "RIFF", 4) != 0 ||
      std::memcmp(data + 8, "WAVE", 4) != 0) {
    ET_LOG(Error, "wav: %zu bytes do not begin as a RIFF/WAVE file", data_size);
    return nullptr;
  }
  auto header = std::make_unique<WavHeader>();
  std::memcpy(header->RIFF, data, 4);
  header->ChunkSize = detail::read_le32(data + 4);
  std::memcpy(header->WAVE, data + 8, 4);
  bool has_format = false;
  uint64_t at = 12;
  while (at + 8 <= data_size) {
    const char* const chunk = data + at;
    const uint32_t size = detail::read_le32(chunk + 4);
    if (std::memcmp(chunk, "data", 4) == 0) {
      if (!has_format || at + 8 > UINT32_MAX) break;
      header->dataOffset = static_cast<uint32_t>(at + 8);
      header->Subchunk2Size = size;
      return header;
    }
    const uint64_t end = at + 8 + size;
    if (std::memcmp(chunk, "fmt ", 4) == 0) {
      if (size < 16 || end > data_size) break;
      detail::read_wav_format(chunk, size, *header);
      has_format = true;
    }
    at = end + size % 2;
  }
  ET_LOG(Error, "wav: found %s in %zu bytes; expected a chunk 'fmt ' and one 'data' behind it",
         has_format ? "a format, but no samples" : "no format", data_size);
  return nullptr;
}

/// Null for a file that cannot be read, too.
inline std::unique_ptr<WavHeader> load_wav_header(const std::string& fp) {
  const std::vector<char> bytes = detail::read_file(fp);
  if (bytes.empty()) {
    ET_LOG(Error, "wav: cannot read %s", fp.c_str());
    return nullptr;
  }
  return load_wav_header(bytes.data(), bytes.size());
}

namespace detail {

/// The samples of a file in memory; `fp` names it in the log.
inline std::vector<float> read_wav_samples(const char* data, size_t data_size, const char* fp) {
  const auto header = load_wav_header(data, data_size);
  if (header == nullptr) return {};
  const int bits = header->bitsPerSample;
  const bool is_pcm =
      header->AudioFormat == kWavFormatPcm && (bits == 16 || bits == 24 || bits == 32);
  const bool is_float = header->AudioFormat == kWavFormatIeeeFloat && bits == 32;
  if (!is_pcm && !is_float) {
    ET_LOG(Error, "wav: %s has format 0x%04X of %d bits; expected 1 of 16, 24 or 32, or 3 of 32",
           fp, static_cast<unsigned>(header->AudioFormat), bits);
    return {};
  }
  const size_t n_there = data_size - header->dataOffset;
  const bool is_stream = header->Subchunk2Size == UINT32_MAX;
  if (!is_stream && header->Subchunk2Size > n_there) {
    ET_LOG(Error, "wav: %s is cut off: it has %zu bytes of samples, and says %u", fp, n_there,
           static_cast<unsigned>(header->Subchunk2Size));
    return {};
  }
  const auto width = static_cast<size_t>(bits / 8);
  std::vector<float> samples((is_stream ? n_there : header->Subchunk2Size) / width);
  const char* p = data + header->dataOffset;
  for (float& sample : samples) {
    sample = is_float ? read_float_sample(p) : read_pcm_sample(p, bits);
    p += width;
  }
  return samples;
}

}  // namespace detail

/// The samples of a file, channel after channel for each moment: integers as fractions of the
/// largest one, floats as they are. Empty if there are none, or the file cannot be read: other
/// formats, and fewer bytes than it says, are errors. A file that was written as a stream ends
/// where it ends.
inline std::vector<float> load_wav_audio_data(const std::string& fp) {
  const std::vector<char> bytes = detail::read_file(fp);
  if (bytes.empty()) {
    ET_LOG(Error, "wav: cannot read %s", fp.c_str());
    return {};
  }
  return detail::read_wav_samples(bytes.data(), bytes.size(), fp.c_str());
}

}  // namespace executorch::extension::llm
