#pragma once

#include <executorch/extension/llm/tokenizers/token_decoder.h>

#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// A decoder in the words of a tokenizer.json.
class TokenDecoderConfig {
 public:
  explicit TokenDecoderConfig(std::string type = "") : type(std::move(type)) {}

  std::string type;
  /// Of Replace: a text.
  std::string replace_pattern;
  std::string replace_content;
  std::vector<nlohmann::json> sequence_decoders;
  std::string strip_content;
  size_t strip_start = 0;
  size_t strip_stop = 0;

  /// Takes all that an entry of the file says, also of kinds that have no member here.
  TokenDecoderConfig& parse_json(const nlohmann::json& json_config);
  /// Null, with a line in the log, where it is not understood.
  TokenDecoder::Ptr create() const;

 private:
  nlohmann::json parsed_ = nlohmann::json::object();
};

/// Decoders by name; one that is not understood leaves tokens as they are.
class ConfiguredTokenDecoder : public TokenDecoder {
 public:
  explicit ConfiguredTokenDecoder(const TokenDecoderConfig& config) : made_(config.create()) {}
  std::vector<std::string> decode(const std::vector<std::string>& tokens) const override {
    return made_ == nullptr ? tokens : made_->decode(tokens);
  }

 private:
  Ptr made_;
};

class ByteLevelTokenDecoder : public ConfiguredTokenDecoder {
 public:
  ByteLevelTokenDecoder() : ConfiguredTokenDecoder(TokenDecoderConfig("ByteLevel")) {}
};

class ByteFallbackTokenDecoder : public ConfiguredTokenDecoder {
 public:
  ByteFallbackTokenDecoder() : ConfiguredTokenDecoder(TokenDecoderConfig("ByteFallback")) {}
};

class FuseTokenDecoder : public ConfiguredTokenDecoder {
 public:
  FuseTokenDecoder() : ConfiguredTokenDecoder(TokenDecoderConfig("Fuse")) {}
};

class ReplaceTokenDecoder : public ConfiguredTokenDecoder {
 public:
  explicit ReplaceTokenDecoder(const std::string& pattern, const std::string& content)
      : ConfiguredTokenDecoder(config(pattern, content)) {}

 private:
  static TokenDecoderConfig config(const std::string& pattern, const std::string& content) {
    TokenDecoderConfig made("Replace");
    made.replace_pattern = pattern;
    made.replace_content = content;
    return made;
  }
};

class StripTokenDecoder : public ConfiguredTokenDecoder {
 public:
  explicit StripTokenDecoder(const std::string& content_str, size_t start, size_t stop)
      : ConfiguredTokenDecoder(config(content_str, start, stop)) {}

 private:
  static TokenDecoderConfig config(const std::string& content, size_t start, size_t stop) {
    TokenDecoderConfig made("Strip");
    made.strip_content = content;
    made.strip_start = start;
    made.strip_stop = stop;
    return made;
  }
};

/// One after the other; none is null.
class SequenceTokenDecoder : public TokenDecoder {
 public:
  explicit SequenceTokenDecoder(std::vector<TokenDecoder::Ptr> decoders)
      : steps_(std::move(decoders)) {}
  std::vector<std::string> decode(const std::vector<std::string>& tokens) const override {
    std::vector<std::string> result = tokens;
    for (const Ptr& step : steps_) result = step->decode(result);
    return result;
  }

 private:
  std::vector<TokenDecoder::Ptr> steps_;
};

}  // namespace tokenizers
