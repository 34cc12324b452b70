#pragma once

#include <executorch/extension/llm/runner/multimodal_input.h>

#include <string>
#include <string_view>

/// Images and sound of the command line. All throw Failure, which begins with the path.
namespace executorch::extension::command {

/// A .ppm or .pgm file (P6, P5) of bytes, or .npy with bytes or floats [channels, height, width].
llm::MultimodalInput read_image(const std::string& path);
/// The same of the bytes of a .ppm or .pgm file.
llm::Image parse_pixmap(std::string_view file, const std::string& path);

/// The samples of a .wav file, channel after channel, as floats; or .npy with a spectrogram, the
/// floats [bins, frames] or [batch, bins, frames].
llm::MultimodalInput read_sound(const std::string& path);

}  // namespace executorch::extension::command
