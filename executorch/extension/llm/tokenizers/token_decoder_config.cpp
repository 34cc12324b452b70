#include <executorch/extension/llm/tokenizers/log.h>
#include <executorch/extension/llm/tokenizers/token_decoder_config.h>

namespace tokenizers {

TokenDecoderConfig& TokenDecoderConfig::parse_json(const nlohmann::json& json_config) {
  parsed_ = json_config.is_object() ? json_config : nlohmann::json::object();
  const Json read = parsed_;
  type = string_at(read, "type", type);
  if (type == "Replace") {
    replace_pattern = pattern_at(read, "pattern").text;
    replace_content = string_at(read, "content");
  } else if (type == "Strip") {
    const auto count = [&](const char* key) {
      const Json& value = at(read, key);
      return is_count(value) ? value.get<size_t>() : 0;
    };
    strip_content = string_at(read, "content");
    strip_start = count("start");
    strip_stop = count("stop");
  } else if (type == "Sequence") {
    const Json& steps = at(read, "decoders");
    if (steps.is_array()) sequence_decoders.assign(steps.begin(), steps.end());
  }
  return *this;
}

TokenDecoder::Ptr TokenDecoderConfig::create() const {
  nlohmann::json json = parsed_;
  json["type"] = type;
  if (type == "Replace") {
    const bool is_regex = pattern_at(Json(parsed_), "pattern").is_regex;
    json["pattern"] = {{is_regex ? "Regex" : "String", replace_pattern}};
    json["content"] = replace_content;
  } else if (type == "Strip") {
    json["content"] = strip_content;
    json["start"] = strip_start;
    json["stop"] = strip_stop;
  } else if (type == "Sequence") {
    json["decoders"] = sequence_decoders;
  }
  std::string message;
  TokenDecoder::Ptr made = make_decoder(Json(json), message);
  if (made == nullptr) {
    TK_LOG(Error, "decoder: %s", message.c_str());
  }
  return made;
}

}  // namespace tokenizers
