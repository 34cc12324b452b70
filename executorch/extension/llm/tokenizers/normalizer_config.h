#pragma once

#include <executorch/extension/llm/tokenizers/normalizer.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// A normalizer in the words of a tokenizer.json.
class NormalizerConfig {
 public:
  explicit NormalizerConfig(std::string type = "") : type(std::move(type)) {}

  std::string type;
  /// A regular expression.
  std::optional<std::string> pattern;
  std::optional<std::string> content;
  std::optional<std::vector<NormalizerConfig>> normalizers;
  std::optional<std::string> prepend;

  NormalizerConfig& set_pattern(std::string value);
  NormalizerConfig& set_content(std::string value);
  NormalizerConfig& set_normalizers(std::vector<NormalizerConfig> value);
  NormalizerConfig& set_prepend(std::string value);

  /// Takes all that an entry of the file says, also of kinds that have no member here.
  NormalizerConfig& parse_json(const nlohmann::json& json_config);
  /// Null, with a line in the log, where it is not understood.
  Normalizer::Ptr create() const;

 private:
  nlohmann::json json() const;

  nlohmann::json parsed_ = nlohmann::json::object();
};

/// Normalizers by name; one that is not understood leaves texts as they are.
class ConfiguredNormalizer : public Normalizer {
 public:
  explicit ConfiguredNormalizer(const NormalizerConfig& config) : made_(config.create()) {}
  std::string normalize(const std::string& input) const override {
    return made_ == nullptr ? input : made_->normalize(input);
  }

 private:
  Ptr made_;
};

class ReplaceNormalizer : public ConfiguredNormalizer {
 public:
  explicit ReplaceNormalizer(const std::string& pattern, const std::string& content)
      : ConfiguredNormalizer(
            NormalizerConfig("Replace").set_pattern(pattern).set_content(content)) {}
};

class PrependNormalizer : public ConfiguredNormalizer {
 public:
  explicit PrependNormalizer(const std::string& prepend)
      : ConfiguredNormalizer(NormalizerConfig("Prepend").set_prepend(prepend)) {}
};

class NFCNormalizer : public ConfiguredNormalizer {
 public:
  explicit NFCNormalizer() : ConfiguredNormalizer(NormalizerConfig("NFC")) {}
};

/// One after the other; none is null.
class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<Normalizer::Ptr> normalizers)
      : steps_(std::move(normalizers)) {}
  std::string normalize(const std::string& input) const override {
    std::string text = input;
    for (const Ptr& step : steps_) text = step->normalize(text);
    return text;
  }

 private:
  std::vector<Normalizer::Ptr> steps_;
};

}  // namespace tokenizers
