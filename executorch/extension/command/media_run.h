#pragma once

#include <executorch/extension/command/verbs.h>
#include <executorch/extension/llm/runner/multimodal_input.h>

#include <string>
#include <vector>

namespace executorch::extension::command {

/// The prompt in pieces: an image for each <image> in it, sound for each <audio>; those for which
/// there is no place come first. Throws Failure if there are fewer than places.
std::vector<llm::MultimodalInput> pieces_of(const std::string& prompt,
                                            std::vector<llm::MultimodalInput> images,
                                            std::vector<llm::MultimodalInput> sounds);

/// What `generate` does for a prompt with images and sound. Throws Failure.
void continue_media(const GenerateVerb& verb, const std::string& prompt);

}  // namespace executorch::extension::command
