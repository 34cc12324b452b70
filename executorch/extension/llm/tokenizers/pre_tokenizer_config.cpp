#include <executorch/extension/llm/tokenizers/pre_tokenizer_config.h>

#include <executorch/extension/llm/tokenizers/log.h>

namespace tokenizers {
namespace {

template <typename T>
void put(nlohmann::json& json, const char* key, const std::optional<T>& value) {
  if (value.has_value()) json[key] = *value;
}

}  // namespace

PreTokenizerConfig& PreTokenizerConfig::set_pattern(std::string value) {
  pattern = std::move(value);
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_individual_digits(bool value) {
  individual_digits = value;
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_add_prefix_space(bool value) {
  add_prefix_space = value;
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_use_regex(bool value) {
  use_regex = value;
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_is_delimiter(bool value) {
  is_delimiter = value;
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_behavior(std::string value) {
  behavior = std::move(value);
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_invert(bool value) {
  invert = value;
  return *this;
}
PreTokenizerConfig& PreTokenizerConfig::set_pretokenizers(std::vector<PreTokenizerConfig> value) {
  pretokenizers = std::move(value);
  return *this;
}

PreTokenizerConfig& PreTokenizerConfig::parse_json(const nlohmann::json& json_config) {
  parsed_ = json_config.is_object() ? json_config : nlohmann::json::object();
  type = string_at(Json(parsed_), "type", type);
  return *this;
}

nlohmann::json PreTokenizerConfig::json() const {
  nlohmann::json json = parsed_;
  json["type"] = type;
  if (pattern.has_value()) json["pattern"] = {{"Regex", *pattern}};
  put(json, "individual_digits", individual_digits);
  put(json, "add_prefix_space", add_prefix_space);
  put(json, "use_regex", use_regex);
  put(json, "behavior", behavior);
  put(json, "invert", invert);
  if (is_delimiter == false) {
    json["invert"] = true;
    json["behavior"] = "Removed";
  } else if (is_delimiter == true && !json.contains("behavior")) {
    json["behavior"] = "Removed";
  }
  if (pretokenizers.has_value()) {
    json["pretokenizers"] = nlohmann::json::array();
    for (const PreTokenizerConfig& step : *pretokenizers) {
      json["pretokenizers"].push_back(step.json());
    }
  }
  return json;
}

PreTokenizer::Ptr PreTokenizerConfig::create() const {
  std::string message;
  PreTokenizer::Ptr made = make_pre_tokenizer(Json(json()), message);
  if (made == nullptr) {
    TK_LOG(Error, "pre-tokenizer: %s", message.c_str());
  }
  return made;
}

std::vector<std::string> ConfiguredPreTokenizer::pre_tokenize(const std::string& input) const {
  return PreTokenizer::pre_tokenize(input);
}

bool ConfiguredPreTokenizer::split(std::vector<std::string>& pieces, size_t& front) const {
  return made_ == nullptr || made_->split(pieces, front);
}

std::vector<std::string> SequencePreTokenizer::pre_tokenize(const std::string& input) const {
  return PreTokenizer::pre_tokenize(input);
}

bool SequencePreTokenizer::split(std::vector<std::string>& pieces, size_t& front) const {
  for (const PreTokenizer::Ptr& step : steps_) {
    if (!step->split(pieces, front)) return false;
  }
  return true;
}

}  // namespace tokenizers
