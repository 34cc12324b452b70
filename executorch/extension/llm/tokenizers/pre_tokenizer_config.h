#pragma once

#include <executorch/extension/llm/tokenizers/pre_tokenizer.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// A pre-tokenizer in the words of a tokenizer.json. What is not set has the file's default.
class PreTokenizerConfig {
 public:
  explicit PreTokenizerConfig(std::string type = "") : type(std::move(type)) {}

  std::string type;
  std::optional<std::string> pattern;
  std::optional<bool> individual_digits;
  std::optional<bool> add_prefix_space;
  std::optional<bool> use_regex;
  /// False: the matches of `pattern` are the pieces, and what is between them goes.
  std::optional<bool> is_delimiter;
  std::optional<std::string> behavior;
  std::optional<bool> invert;
  std::optional<std::vector<PreTokenizerConfig>> pretokenizers;

  PreTokenizerConfig& set_pattern(std::string value);
  PreTokenizerConfig& set_individual_digits(bool value);
  PreTokenizerConfig& set_add_prefix_space(bool value);
  PreTokenizerConfig& set_use_regex(bool value);
  PreTokenizerConfig& set_is_delimiter(bool value);
  PreTokenizerConfig& set_behavior(std::string value);
  PreTokenizerConfig& set_invert(bool value);
  PreTokenizerConfig& set_pretokenizers(std::vector<PreTokenizerConfig> value);

  /// Takes all that an entry of the file says, also of kinds that have no member here.
  PreTokenizerConfig& parse_json(const nlohmann::json& json_config);
  /// Null, with a line in the log, where it is not understood.
  PreTokenizer::Ptr create() const;

 private:
  nlohmann::json json() const;

  nlohmann::json parsed_ = nlohmann::json::object();
};

/// Pre-tokenizers by name; a pattern that does not compile leaves texts whole.
class ConfiguredPreTokenizer : public PreTokenizer {
 public:
  explicit ConfiguredPreTokenizer(const PreTokenizerConfig& config) : made_(config.create()) {}
  std::vector<std::string> pre_tokenize(const std::string& input) const override;
  bool split(std::vector<std::string>& pieces, size_t& front) const override;

 private:
  Ptr made_;
};

class RegexPreTokenizer : public ConfiguredPreTokenizer {
 public:
  explicit RegexPreTokenizer(const std::string& pattern, bool is_delimiter = false,
                             const std::string& behavior = "Removed")
      : ConfiguredPreTokenizer(PreTokenizerConfig("Split")
                                   .set_pattern(pattern)
                                   .set_is_delimiter(is_delimiter)
                                   .set_behavior(behavior)) {}
};

class DigitsPreTokenizer : public ConfiguredPreTokenizer {
 public:
  explicit DigitsPreTokenizer(bool individual_digits = false)
      : ConfiguredPreTokenizer(
            PreTokenizerConfig("Digits").set_individual_digits(individual_digits)) {}
};

class ByteLevelPreTokenizer : public ConfiguredPreTokenizer {
 public:
  /// `pattern`: other words than GPT-2's.
  ByteLevelPreTokenizer(bool add_prefix_space = true, const std::string& pattern = "",
                        bool use_regex = true)
      : ConfiguredPreTokenizer(PreTokenizerConfig("ByteLevel")
                                   .set_add_prefix_space(add_prefix_space)
                                   .set_pattern(pattern)
                                   .set_use_regex(use_regex)) {}
  explicit ByteLevelPreTokenizer(const std::string& pattern)
      : ByteLevelPreTokenizer(true, pattern) {}
};

/// One after the other; none is null.
class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<PreTokenizer::Ptr> pre_tokenizers)
      : steps_(std::move(pre_tokenizers)) {}
  std::vector<std::string> pre_tokenize(const std::string& input) const override;
  bool split(std::vector<std::string>& pieces, size_t& front) const override;

 private:
  std::vector<PreTokenizer::Ptr> steps_;
};

}  // namespace tokenizers
