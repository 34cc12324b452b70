#include <executorch/extension/llm/tokenizers/token_decoder.h>

#include <executorch/extension/llm/tokenizers/byte_level_bpe.h>
#include <executorch/extension/llm/tokenizers/normalizer.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <functional>

namespace tokenizers {
namespace {

using Pieces = std::vector<std::string>;
using Function = std::function<Pieces(const Pieces&)>;

class FunctionDecoder : public TokenDecoder {
 public:
  explicit FunctionDecoder(Function function) : function_(std::move(function)) {}
  Pieces decode(const Pieces& tokens) const override { return function_(tokens); }

 private:
  Function function_;
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != std::string::npos;
       at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// Spaces that English has no use for.
void clean_up(std::string& text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

Pieces byte_level(const Pieces& tokens) {
  Pieces result(1);
  std::string bytes;
  for (const std::string& token : tokens) {
    result[0] += byte_alphabet::decode(token, bytes) ? bytes : token;
  }
  return result;
}

Pieces byte_fallback(const Pieces& tokens) {
  Pieces result;
  for (const std::string& token : tokens) {
    unsigned value = 0;
    const bool is_byte = token.size() == 6 && token.compare(0, 3, "<0x") == 0 && token[5] == '>' &&
                         std::isxdigit(static_cast<uint8_t>(token[3])) != 0 &&
                         std::isxdigit(static_cast<uint8_t>(token[4])) != 0;
    if (is_byte) value = static_cast<unsigned>(std::stoul(token.substr(3, 2), nullptr, 16));
    result.push_back(is_byte ? std::string(1, static_cast<char>(value)) : token);
  }
  return result;
}

Function word_piece(const Json& config) {
  const std::string prefix = string_at(config, "prefix", "##");
  const bool cleanup = bool_at(config, "cleanup", true);
  return [=](const Pieces& tokens) {
    Pieces result = tokens;
    for (size_t i = 0; i < result.size(); ++i) {
      std::string& token = result[i];
      if (i != 0) {
        token = token.compare(0, prefix.size(), prefix) == 0 ? token.substr(prefix.size())
                                                             : " " + token;
      }
      if (cleanup) clean_up(token);
    }
    return result;
  };
}

Function metaspace(const Json& config) {
  const std::string space = string_at(config, "replacement", "\u2581");
  const bool prefix = bool_at(config, "add_prefix_space", true);
  const bool strips = string_at(config, "prepend_scheme", prefix ? "always" : "never") != "never";
  return [=](const Pieces& tokens) {
    Pieces result = tokens;
    for (size_t i = 0; i < result.size(); ++i) {
      // The first token loses all of them, also those behind other characters.
      replace_all(result[i], space, i == 0 && strips ? "" : " ");
    }
    return result;
  };
}

Function bpe(const Json& config) {
  const std::string suffix = string_at(config, "suffix", "</w>");
  return [=](const Pieces& tokens) {
    Pieces result = tokens;
    for (size_t i = 0; i < result.size(); ++i) {
      replace_all(result[i], suffix, i + 1 == result.size() ? "" : " ");
    }
    return result;
  };
}

size_t count_at(const Json& config, const char* key) {
  const Json& value = at(config, key);
  return value.is_number_unsigned() ? value.get<size_t>() : 0;
}

Function strip(const Json& config) {
  const std::string content = string_at(config, "content");
  const size_t start = count_at(config, "start");
  const size_t stop = count_at(config, "stop");
  return [=](const Pieces& tokens) {
    Pieces result = tokens;
    for (std::string& token : result) {
      const size_t n = content.size();
      for (size_t i = 0; i < start && n != 0 && token.compare(0, n, content) == 0; ++i) {
        token.erase(0, n);
      }
      for (size_t i = 0; i < stop && n != 0 && token.size() >= n &&
                         token.compare(token.size() - n, n, content) == 0;
           ++i) {
        token.erase(token.size() - n);
      }
    }
    return result;
  };
}

Function ctc(const Json& config) {
  const std::string pad = string_at(config, "pad_token", "<pad>");
  const std::string delimiter = string_at(config, "word_delimiter_token", "|");
  const bool cleanup = bool_at(config, "cleanup", true);
  return [=](const Pieces& tokens) {
    Pieces result;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i] == tokens[i - 1]) continue;
      std::string token = tokens[i];
      replace_all(token, pad, "");
      if (cleanup) {
        clean_up(token);
        replace_all(token, delimiter, " ");
      }
      if (!token.empty()) result.push_back(std::move(token));
    }
    return result;
  };
}

Function sequence(const Json& config, std::string& message, int depth) {
  std::vector<TokenDecoder::Ptr> steps;
  for (const Json& step : at(config, "decoders")) {
    steps.push_back(make_decoder(step, message, depth + 1));
    if (steps.back() == nullptr) return nullptr;
  }
  return [=](const Pieces& tokens) {
    Pieces result = tokens;
    for (const TokenDecoder::Ptr& step : steps) result = step->decode(result);
    return result;
  };
}

Function make_function(const Json& config, std::string& message, int depth) {
  const std::string type = string_at(config, "type");
  if (type == "Sequence") return sequence(config, message, depth);
  if (type == "ByteLevel") return byte_level;
  if (type == "ByteFallback") return byte_fallback;
  if (type == "WordPiece") return word_piece(config);
  if (type == "Metaspace") return metaspace(config);
  if (type == "BPEDecoder") return bpe(config);
  if (type == "CTC") return ctc(config);
  if (type == "Strip") return strip(config);
  if (type == "Fuse") {
    return [](const Pieces& tokens) {
      Pieces result(1);
      for (const std::string& token : tokens) result[0] += token;
      return result;
    };
  } else if (type == "Replace") {
    Json normalizer = config;
    const Normalizer::Ptr replace = make_normalizer(normalizer, message);
    if (replace == nullptr) return nullptr;
    return [=](const Pieces& tokens) {
      Pieces result;
      for (const std::string& token : tokens) result.push_back(replace->normalize(token));
      return result;
    };
  }
  message = "unknown decoder " + type;
  return nullptr;
}

}  // namespace

TokenDecoder::Ptr make_decoder(const Json& config, std::string& message, int depth) {
  if (depth > 20) {
    message = "decoders are nested too deeply";
    return nullptr;
  }
  Function function = make_function(config, message, depth);
  return function ? std::make_shared<FunctionDecoder>(std::move(function)) : nullptr;
}

}  // namespace tokenizers
