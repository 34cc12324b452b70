#pragma once

#include <executorch/extension/llm/runner/audio.h>
#include <executorch/extension/llm/runner/image.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace executorch::extension::llm {

/// A piece of a prompt: text, tokens, an image or sound.
class MultimodalInput {
 public:
  /// In the order of the variant below.
  enum class Type { TEXT, TOKENS, IMAGE, AUDIO, RAW_AUDIO, UNSUPPORTED };

  static constexpr const char* TypeName(Type t) noexcept {
    constexpr const char* kNames[] = {"text", "tokens", "image", "audio", "raw_audio"};
    return t >= Type::TEXT && t < Type::UNSUPPORTED ? kNames[static_cast<int>(t)] : "unknown";
  }
  static std::string TypeToString(Type t) { return TypeName(t); }

  explicit MultimodalInput(const std::string& text) : data_(text) {}
  explicit MultimodalInput(std::string&& text) : data_(std::move(text)) {}
  explicit MultimodalInput(const std::vector<uint64_t>& tokens) : data_(tokens) {}
  explicit MultimodalInput(std::vector<uint64_t>&& tokens) : data_(std::move(tokens)) {}
  explicit MultimodalInput(const Image& image) : data_(image) {}
  explicit MultimodalInput(Image&& image) : data_(std::move(image)) {}
  explicit MultimodalInput(const Audio& audio) : data_(audio) {}
  explicit MultimodalInput(Audio&& audio) : data_(std::move(audio)) {}
  explicit MultimodalInput(const RawAudio& raw_audio) : data_(raw_audio) {}
  explicit MultimodalInput(RawAudio&& raw_audio) : data_(std::move(raw_audio)) {}
  MultimodalInput(const MultimodalInput& other) = default;
  MultimodalInput& operator=(const MultimodalInput& other) = default;
  MultimodalInput(MultimodalInput&& other) noexcept = default;
  MultimodalInput& operator=(MultimodalInput&& other) noexcept = default;
  ~MultimodalInput() = default;

  Type get_type() const noexcept { return static_cast<Type>(data_.index()); }
  const char* type_name() const noexcept { return TypeName(get_type()); }
  bool is_text() const noexcept { return std::holds_alternative<std::string>(data_); }
  bool is_tokens() const noexcept { return std::holds_alternative<std::vector<uint64_t>>(data_); }
  bool is_image() const noexcept { return std::holds_alternative<Image>(data_); }
  bool is_audio() const noexcept { return std::holds_alternative<Audio>(data_); }
  bool is_raw_audio() const noexcept { return std::holds_alternative<RawAudio>(data_); }

  // These throw std::bad_variant_access where it is of another type.
  const std::string& get_text() const& { return std::get<std::string>(data_); }
  std::string& get_text() & { return std::get<std::string>(data_); }
  std::string&& get_text() && { return std::get<std::string>(std::move(data_)); }
  const std::vector<uint64_t>& get_tokens() const& {
    return std::get<std::vector<uint64_t>>(data_);
  }
  std::vector<uint64_t>& get_tokens() & { return std::get<std::vector<uint64_t>>(data_); }
  std::vector<uint64_t>&& get_tokens() && {
    return std::get<std::vector<uint64_t>>(std::move(data_));
  }
  const Image& get_image() const& { return std::get<Image>(data_); }
  Image& get_image() & { return std::get<Image>(data_); }
  Image&& get_image() && { return std::get<Image>(std::move(data_)); }
  const Audio& get_audio() const& { return std::get<Audio>(data_); }
  Audio& get_audio() & { return std::get<Audio>(data_); }
  Audio&& get_audio() && { return std::get<Audio>(std::move(data_)); }
  const RawAudio& get_raw_audio() const& { return std::get<RawAudio>(data_); }
  RawAudio& get_raw_audio() & { return std::get<RawAudio>(data_); }
  RawAudio&& get_raw_audio() && { return std::get<RawAudio>(std::move(data_)); }

  // Null for the type that it is not.
  const std::string* try_get_text() const noexcept { return std::get_if<std::string>(&data_); }
  std::string* try_get_text() noexcept { return std::get_if<std::string>(&data_); }
  const std::vector<uint64_t>* try_get_tokens() const noexcept {
    return std::get_if<std::vector<uint64_t>>(&data_);
  }
  std::vector<uint64_t>* try_get_tokens() noexcept {
    return std::get_if<std::vector<uint64_t>>(&data_);
  }
  const Image* try_get_image() const noexcept { return std::get_if<Image>(&data_); }
  Image* try_get_image() noexcept { return std::get_if<Image>(&data_); }
  const Audio* try_get_audio() const noexcept { return std::get_if<Audio>(&data_); }
  Audio* try_get_audio() noexcept { return std::get_if<Audio>(&data_); }
  const RawAudio* try_get_raw_audio() const noexcept { return std::get_if<RawAudio>(&data_); }
  RawAudio* try_get_raw_audio() noexcept { return std::get_if<RawAudio>(&data_); }

 private:
  std::variant<std::string, std::vector<uint64_t>, Image, Audio, RawAudio> data_;
};

inline MultimodalInput make_text_input(const std::string& text) noexcept {
  return MultimodalInput(text);
}
inline MultimodalInput make_text_input(std::string&& text) noexcept {
  return MultimodalInput(std::move(text));
}
inline MultimodalInput make_image_input(const Image& image) noexcept {
  return MultimodalInput(image);
}
inline MultimodalInput make_image_input(Image&& image) noexcept {
  return MultimodalInput(std::move(image));
}
inline MultimodalInput make_token_input(const std::vector<uint64_t>& tokens) noexcept {
  return MultimodalInput(tokens);
}
inline MultimodalInput make_token_input(std::vector<uint64_t>&& tokens) noexcept {
  return MultimodalInput(std::move(tokens));
}
inline MultimodalInput make_audio_input(const Audio& audio) noexcept {
  return MultimodalInput(audio);
}
inline MultimodalInput make_audio_input(Audio&& audio) noexcept {
  return MultimodalInput(std::move(audio));
}
inline MultimodalInput make_raw_audio_input(const RawAudio& raw_audio) noexcept {
  return MultimodalInput(raw_audio);
}
inline MultimodalInput make_raw_audio_input(RawAudio&& raw_audio) noexcept {
  return MultimodalInput(std::move(raw_audio));
}

}  // namespace executorch::extension::llm
