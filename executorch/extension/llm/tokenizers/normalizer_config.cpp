#include <executorch/extension/llm/tokenizers/log.h>
#include <executorch/extension/llm/tokenizers/normalizer_config.h>

namespace tokenizers {

NormalizerConfig& NormalizerConfig::set_pattern(std::string value) {
  pattern = std::move(value);
  return *this;
}
NormalizerConfig& NormalizerConfig::set_content(std::string value) {
  content = std::move(value);
  return *this;
}
NormalizerConfig& NormalizerConfig::set_normalizers(std::vector<NormalizerConfig> value) {
  normalizers = std::move(value);
  return *this;
}
NormalizerConfig& NormalizerConfig::set_prepend(std::string value) {
  prepend = std::move(value);
  return *this;
}

NormalizerConfig& NormalizerConfig::parse_json(const nlohmann::json& json_config) {
  parsed_ = json_config.is_object() ? json_config : nlohmann::json::object();
  type = string_at(Json(parsed_), "type", type);
  return *this;
}

nlohmann::json NormalizerConfig::json() const {
  nlohmann::json json = parsed_;
  json["type"] = type;
  if (pattern.has_value()) json["pattern"] = {{"Regex", *pattern}};
  if (content.has_value()) json["content"] = *content;
  if (prepend.has_value()) json["prepend"] = *prepend;
  if (normalizers.has_value()) {
    json["normalizers"] = nlohmann::json::array();
    for (const NormalizerConfig& step : *normalizers) json["normalizers"].push_back(step.json());
  }
  return json;
}

Normalizer::Ptr NormalizerConfig::create() const {
  std::string message;
  Normalizer::Ptr made = make_normalizer(Json(json()), message);
  if (made == nullptr) {
    TK_LOG(Error, "normalizer: %s", message.c_str());
  }
  return made;
}

}  // namespace tokenizers
