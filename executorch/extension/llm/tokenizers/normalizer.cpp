#include <executorch/extension/llm/tokenizers/normalizer.h>

#include <executorch/extension/llm/tokenizers/base64.h>
#include <executorch/extension/llm/tokenizers/charsmap.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <functional>
#include <stdexcept>
#include <vector>

namespace tokenizers {

namespace {

using Function = std::function<std::string(const std::string&)>;

class FunctionNormalizer : public Normalizer {
 public:
  explicit FunctionNormalizer(Function function) : function_(std::move(function)) {}
  std::string normalize(const std::string& input) const override { return function_(input); }

 private:
  Function function_;
};

/// Throws where a text became so much longer that steps were made to do that.
void check_growth(const std::string& from, const std::string& to) {
  constexpr size_t kMostGrowth = 256;
  if (to.size() / kMostGrowth > from.size() + 1024) {
    throw std::length_error("the normalized text is too long");
  }
}

template <typename Use>
std::string for_each_character(const std::string& text, const Use& use) {
  std::string result;
  result.reserve(text.size());
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const utf8::Character c = utf8::decode(at, end);
    use(c.code_point, std::string_view(at, c.length), result);
    at += c.length;
  }
  return result;
}

std::string lower(const std::string& text) {
  return for_each_character(
      text, [](uint32_t c, std::string_view, std::string& out) { unicode::append_lower(out, c); });
}

std::string without(unicode::Flag accents, const std::string& text) {
  return for_each_character(text, [=](uint32_t c, std::string_view bytes, std::string& out) {
    if ((unicode::properties(c) & accents) == 0) {
      out += bytes;
    }
  });
}

std::string stripped(const std::string& text, bool left, bool right) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  while (left && begin < end) {
    const utf8::Character c = utf8::decode(begin, end);
    if (!unicode::is_space(c.code_point)) {
      break;
    }
    begin += c.length;
  }
  while (right && begin < end) {
    const char* last = end - 1;
    while (last > begin && (static_cast<uint8_t>(*last) & 0xc0) == 0x80) {
      --last;
    }
    if (!unicode::is_space(utf8::decode(last, end).code_point)) {
      break;
    }
    end = last;
  }
  return std::string(begin, end);
}

/// Control characters go, white space becomes one space: the rules of SentencePiece's "nmt".
std::string nmt(const std::string& text) {
  return for_each_character(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                       (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
    const bool gone = (c >= 1 && c < 32) || c == 0x7f || c == 0x8f || c == 0x9f;
    if (space) {
      out += ' ';
    } else if (!gone) {
      out += bytes;
    }
  });
}

Function bert(const Json& config) {
  const bool clean = bool_at(config, "clean_text", true);
  const bool chinese = bool_at(config, "handle_chinese_chars", true);
  const bool small = bool_at(config, "lowercase", true);
  const bool accents = bool_at(config, "strip_accents", small);
  return [=](const std::string& text) {
    std::string result =
        for_each_character(text, [&](uint32_t c, std::string_view bytes, std::string& out) {
          const uint32_t properties = unicode::properties(c);
          if (clean && (c == 0 || c == 0xfffd || (properties & unicode::kUnclean) != 0)) {
            return;
          }
          if (chinese && (properties & unicode::kChinese) != 0) {
            out += ' ';
            out += bytes;
            out += ' ';
          } else if (clean && unicode::is_space(c)) {
            out += ' ';
          } else {
            out += bytes;
          }
        });
    if (accents) {
      result = without(unicode::kBertAccent, unicode::normalize(result, unicode::Form::kNfd));
    }
    return small ? lower(result) : result;
  };
}

Function precompiled(const std::shared_ptr<Charsmap>& charsmap) {
  return [charsmap](const std::string& text) {
    std::string result;
    std::string_view rest = text;
    size_t length = 0;
    std::string_view replacement;
    while (!rest.empty()) {
      const size_t grapheme = unicode::grapheme_length(rest);
      if (grapheme < 6 && charsmap->find(rest.substr(0, grapheme), false, length, replacement)) {
        result += replacement;
      } else {
        result += for_each_character(
            std::string(rest.substr(0, grapheme)),
            [&](uint32_t, std::string_view bytes, std::string& out) {
              out += charsmap->find(bytes, false, length, replacement) ? replacement : bytes;
            });
      }
      rest.remove_prefix(grapheme);
    }
    return result;
  };
}

Function replace(const TextPattern& pattern, const std::string& content, std::string& message) {
  if (!pattern.is_regex) {
    if (pattern.text.empty()) {
      return [](const std::string& text) { return text; };
    }
    return [pattern, content](const std::string& text) {
      std::string result;
      size_t start = 0;
      for (size_t found; (found = text.find(pattern.text, start)) != std::string::npos;
           start = found + pattern.text.size()) {
        result.append(text, start, found - start);
        result += content;
        check_growth(text, result);
      }
      return result.append(text, start, std::string::npos);
    };
  }
  const auto regex = std::make_shared<UnicodeRegex>();
  if (regex->compile(pattern.text) != Error::Ok) {
    message = "Replace: " + regex->message();
    return nullptr;
  }
  return [regex, content](const std::string& text) {
    std::string result;
    size_t start = 0;
    for (const Match& match : regex->find_all(text)) {
      result.append(text, start, match.start - start);
      result += content;
      check_growth(text, result);
      start = match.end;
    }
    return result.append(text, start, std::string::npos);
  };
}

Function make_sequence(const Json& config, std::string& message, int depth) {
  std::vector<Normalizer::Ptr> steps;
  for (const Json& step : at(config, "normalizers")) {
    steps.push_back(make_normalizer(step, message, depth + 1));
    if (steps.back() == nullptr) {
      return nullptr;
    }
  }
  return [steps](const std::string& text) {
    std::string result = text;
    for (const Normalizer::Ptr& step : steps) {
      result = step->normalize(result);
      check_growth(text, result);
    }
    return result;
  };
}

Function make_function(const Json& config, std::string& message, int depth) {
  const std::string type = string_at(config, "type");
  const auto form = [](unicode::Form f) {
    return [f](const std::string& text) { return unicode::normalize(text, f); };
  };
  if (type == "Sequence") {
    return make_sequence(config, message, depth);
  } else if (type == "NFC") {
    return form(unicode::Form::kNfc);
  } else if (type == "NFD") {
    return form(unicode::Form::kNfd);
  } else if (type == "NFKC") {
    return form(unicode::Form::kNfkc);
  } else if (type == "NFKD") {
    return form(unicode::Form::kNfkd);
  } else if (type == "Lowercase") {
    return lower;
  } else if (type == "StripAccents") {
    return [](const std::string& text) { return without(unicode::kAccent, text); };
  } else if (type == "Strip") {
    const bool left = bool_at(config, "strip_left", true);
    const bool right = bool_at(config, "strip_right", true);
    return [=](const std::string& text) { return stripped(text, left, right); };
  } else if (type == "Nmt") {
    return nmt;
  } else if (type == "Prepend") {
    const std::string prefix = string_at(config, "prepend");
    return [=](const std::string& text) { return text.empty() ? text : prefix + text; };
  } else if (type == "Replace") {
    return replace(pattern_at(config, "pattern"), string_at(config, "content"), message);
  } else if (type == "BertNormalizer") {
    return bert(config);
  } else if (type == "ByteLevel") {
    // The same alphabet as the pre-tokenizer's; hf_tokenizer.cpp sees to it.
    message = "the ByteLevel normalizer is not supported";
    return nullptr;
  } else if (type == "Precompiled") {
    const std::string encoded = string_at(config, "precompiled_charsmap");
    const auto charsmap = std::make_shared<Charsmap>();
    const Result<std::string> bytes =
        encoded.empty() ? Result<std::string>(std::string()) : base64::decode(encoded);
    if (!bytes.ok() || !charsmap->parse(*bytes)) {
      message = "Precompiled: damaged charsmap";
      return nullptr;
    }
    return precompiled(charsmap);
  }
  message = "unknown normalizer " + type;
  return nullptr;
}

}  // namespace

Normalizer::Ptr make_normalizer(const Json& config, std::string& message, int depth) {
  if (depth > 20) {
    message = "normalizers are nested too deeply";
    return nullptr;
  }
  Function function = make_function(config, message, depth);
  return function ? std::make_shared<FunctionNormalizer>(std::move(function)) : nullptr;
}

}  // namespace tokenizers
