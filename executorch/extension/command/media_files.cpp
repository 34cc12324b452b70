#include <executorch/cpu/size.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/media_files.h>
#include <executorch/extension/command/npy.h>
#include <executorch/extension/llm/runner/wav_loader.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace executorch::extension::command {
namespace {

using aten::ScalarType;
using cpu::Size;

constexpr uint64_t kMostBytes = uint64_t{1} << 31;

std::vector<float> floats_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// An array's sizes as exactly three, with 1 in front where there are fewer.
std::vector<aten::SizesType> three_sizes(const NpyArray& array, const std::string& path,
                                         const char* expected) {
  std::vector<aten::SizesType> sizes = array.sizes;
  while (sizes.size() > 3 && sizes[0] == 1) sizes.erase(sizes.begin());
  if (sizes.size() < 2 || sizes.size() > 3) {
    fail(path + " has " + std::to_string(array.sizes.size()) + " dims; expected " + expected);
  }
  if (sizes.size() == 2) sizes.insert(sizes.begin(), 1);
  return sizes;
}

/// The next number of a pixmap's header, behind white space and comments.
int32_t header_number(std::string_view file, size_t& at, const std::string& path) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  at = file.find_first_not_of(kSpace, at);
  while (at < file.size() && file[at] == '#') {
    at = file.find_first_not_of(kSpace, file.find_first_of("\r\n", at));
  }
  int32_t n = 0;
  if (at >= file.size()) fail(path + " ends in its header");
  const auto [end, error] = std::from_chars(&file[at], file.data() + file.size(), n);
  if (error != std::errc() || n < 1) fail(path + " has no positive number where one is expected");
  at = static_cast<size_t>(end - file.data());
  return n;
}

}  // namespace

llm::Image parse_pixmap(std::string_view file, const std::string& path) {
  const std::string_view magic = file.substr(0, 2);
  if (magic != "P6" && magic != "P5") {
    fail(path + " is no image that can be read; expected .ppm (P6), .pgm (P5) or .npy");
  }
  const int32_t channels = magic == "P6" ? 3 : 1;
  size_t at = 2;
  const int32_t width = header_number(file, at, path);
  const int32_t height = header_number(file, at, path);
  const int32_t most = header_number(file, at, path);
  if (most != 255) fail(path + " has values up to " + std::to_string(most) + "; expected 255");
  ++at;  // one white space is before the pixels
  const Size n_pixels = Size(width) * height;
  const Size n_bytes = n_pixels * channels;
  const Size n_there = Size(file.size()) - static_cast<int64_t>(at);
  if (!n_bytes.within(n_there.value_or(-1))) {
    fail(path + " is cut off: " + std::to_string(width) + " x " + std::to_string(height) +
         " pixels are not in " + std::to_string(file.size()) + " bytes");
  }
  const auto* const pixels = reinterpret_cast<const uint8_t*>(file.data()) + at;
  auto planes = llm::internal::planes_of(pixels, static_cast<size_t>(n_bytes.value()),
                                         static_cast<size_t>(channels));
  return llm::Image(std::move(planes), width, height, channels);
}

llm::MultimodalInput read_image(const std::string& path) {
  const std::string file = read_input_file(path, kMostBytes);
  if (!is_npy(file)) return llm::make_image_input(parse_pixmap(file, path));
  const NpyArray array = read_npy(file, path);
  const auto sizes = three_sizes(array, path, "channels, height, width");
  if (array.dtype == ScalarType::Float) {
    return llm::make_image_input(llm::Image(floats_of(array.data), sizes[2], sizes[1], sizes[0]));
  }
  if (array.dtype != ScalarType::Byte) {
    fail(path + " holds " + runtime::toString(array.dtype) + "; expected bytes or floats");
  }
  std::vector<uint8_t> bytes(array.data.begin(), array.data.end());
  return llm::make_image_input(llm::Image(std::move(bytes), sizes[2], sizes[1], sizes[0]));
}

llm::MultimodalInput read_sound(const std::string& path) {
  const std::string file = read_input_file(path, kMostBytes);
  if (is_npy(file)) {
    const NpyArray array = read_npy(file, path);
    const auto sizes = three_sizes(array, path, "bins, frames");
    if (array.dtype != ScalarType::Float) {
      fail(path + " holds " + runtime::toString(array.dtype) + "; expected floats");
    }
    return llm::make_audio_input(llm::Audio(floats_of(array.data), sizes[0], sizes[1], sizes[2]));
  }
  const auto header = llm::load_wav_header(file.data(), file.size());
  const auto samples = llm::detail::read_wav_samples(file.data(), file.size(), path.c_str());
  if (header == nullptr || header->NumOfChan == 0 || samples.empty()) {
    fail(path + " is no sound that can be read; expected .wav or .npy");
  }
  const size_t n_channels = header->NumOfChan;
  const auto planes = llm::internal::planes_of(samples.data(), samples.size(), n_channels);
  llm::RawAudio audio;
  audio.batch_size = 1;
  audio.n_channels = static_cast<int32_t>(n_channels);
  audio.n_samples = static_cast<int32_t>(planes.size() / n_channels);
  audio.data.resize(planes.size() * sizeof(float));
  std::memcpy(audio.data.data(), planes.data(), audio.data.size());
  return llm::make_raw_audio_input(std::move(audio));
}

}  // namespace executorch::extension::command
