#include <executorch/extension/llm/tokenizers/normalizer.h>

#include <executorch/extension/llm/tokenizers/base64.h>
#include <executorch/extension/llm/tokenizers/byte_level_bpe.h>
#include <executorch/extension/llm/tokenizers/charsmap.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <functional>
#include <optional>
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
    if ((unicode::properties(c) & accents) == 0) out += bytes;
  });
}

std::string stripped(const std::string& text, bool left, bool right) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  while (left && begin < end) {
    const utf8::Character c = utf8::decode(begin, end);
    if (!unicode::is_space(c.code_point)) break;
    begin += c.length;
  }
  while (right && begin < end) {
    const char* last = end - 1;
    while (last > begin && (static_cast<uint8_t>(*last) & 0xc0) == 0x80) --last;
    if (!unicode::is_space(utf8::decode(last, end).code_point)) break;
    end = last;
  }
  return std::string(begin, end);
}

/// Removes control characters and replaces white space by spaces, by the rules of SentencePiece's
/// "nmt".
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
          if (clean && (c == 0 || c == 0xfffd || (properties & unicode::kUnclean) != 0)) return;
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

class Stripper : public Normalizer {
 public:
  Stripper(bool left, bool right) : left_(left), right_(right) {}

  std::string normalize(const std::string& input) const override {
    return stripped(input, left_, right_);
  }
  size_t front(const std::string& input, size_t bytes) const override {
    return stripped(input.substr(0, bytes), left_, false).size();
  }

 private:
  bool left_;
  bool right_;
};

class Replacer : public Normalizer {
 public:
  Replacer(std::string wanted, std::string content)
      : wanted_(std::move(wanted)), content_(std::move(content)) {}
  Replacer(UnicodeRegex regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}

  std::string normalize(const std::string& input) const override {
    std::string result;
    size_t start = 0;
    for_each_match(input, [&](size_t begin, size_t end) {
      result.append(input, start, begin - start);
      result += content_;
      check_growth(input, result);
      start = end;
    });
    return result.append(input, start, std::string::npos);
  }
  size_t front(const std::string& input, size_t bytes) const override {
    // A replacement counts as coming from the last byte that it replaces; for an empty match, from
    // the byte before.
    size_t sum = 0;
    size_t start = 0;
    const auto keep = [&](size_t end) { sum += std::min(end, bytes) - std::min(start, bytes); };
    for_each_match(input, [&](size_t begin, size_t end) {
      keep(begin);
      sum += end == 0 || end <= bytes ? content_.size() : 0;
      start = end;
    });
    keep(input.size());
    return sum;
  }

 private:
  template <typename Use>
  void for_each_match(const std::string& text, const Use& use) const {
    if (text.empty()) {
      return;  // Not even a pattern that matches nothing matches here.
    }
    if (regex_) {
      std::vector<Match> matches;
      if (!regex_->find_all(std::string_view(text), matches)) {
        throw std::runtime_error("a pattern that takes too many steps");
      }
      for (const Match& match : matches) use(match.start, match.end);
      return;
    }
    size_t start = 0;
    for (size_t found; !wanted_.empty() && (found = text.find(wanted_, start)) != std::string::npos;
         start = found + wanted_.size()) {
      use(found, found + wanted_.size());
    }
  }

  std::optional<UnicodeRegex> regex_;
  std::string wanted_;
  std::string content_;
};

class Steps : public Normalizer {
 public:
  explicit Steps(std::vector<Ptr> steps) : steps_(std::move(steps)) {}

  std::string normalize(const std::string& input) const override {
    std::string result = input;
    for (const Ptr& step : steps_) {
      result = step->normalize(result);
      check_growth(input, result);
    }
    return result;
  }
  size_t front(const std::string& input, size_t bytes) const override {
    std::string text = input;
    for (const Ptr& step : steps_) {
      bytes = step->front(text, bytes);
      text = step->normalize(text);
      // A boundary within a character that the step composed moves behind the character.
      while (bytes > 0 && bytes < text.size() &&
             (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) {
        ++bytes;
      }
    }
    return bytes;
  }

 private:
  std::vector<Ptr> steps_;
};

Normalizer::Ptr make_replacer(const Json& config, std::string& message) {
  const TextPattern pattern = pattern_at(config, "pattern");
  const std::string content = string_at(config, "content");
  if (!pattern.is_regex) return std::make_shared<Replacer>(pattern.text, content);
  UnicodeRegex regex;
  if (regex.compile(pattern.text, regex::Dialect::kOniguruma) != Error::Ok) {
    message = "Replace: " + regex.message();
    return nullptr;
  }
  return std::make_shared<Replacer>(std::move(regex), content);
}

Normalizer::Ptr make_sequence(const Json& config, std::string& message, int depth) {
  std::vector<Normalizer::Ptr> steps;
  for (const Json& step : at(config, "normalizers")) {
    steps.push_back(make_normalizer(step, message, depth + 1));
    if (steps.back() == nullptr) return nullptr;
  }
  return std::make_shared<Steps>(std::move(steps));
}

Function make_function(const Json& config, std::string& message) {
  const std::string type = string_at(config, "type");
  const auto form = [](unicode::Form f) {
    return [f](const std::string& text) { return unicode::normalize(text, f); };
  };
  if (type == "NFC") return form(unicode::Form::kNfc);
  if (type == "NFD") return form(unicode::Form::kNfd);
  if (type == "NFKC") return form(unicode::Form::kNfkc);
  if (type == "NFKD") return form(unicode::Form::kNfkd);
  if (type == "Lowercase") return lower;
  if (type == "StripAccents") {
    return [](const std::string& text) { return without(unicode::kAccent, text); };
  }
  if (type == "Nmt") return nmt;
  if (type == "Prepend") {
    const std::string prefix = string_at(config, "prepend");
    return [=](const std::string& text) { return text.empty() ? text : prefix + text; };
  }
  if (type == "BertNormalizer") return bert(config);
  if (type == "ByteLevel") {
    return [](const std::string& text) { return byte_alphabet::encode(text); };
  }
  if (type == "Precompiled") {
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
  const std::string type = string_at(config, "type");
  if (type == "Sequence") return make_sequence(config, message, depth);
  if (type == "Strip") {
    return std::make_shared<Stripper>(bool_at(config, "strip_left", true),
                                      bool_at(config, "strip_right", true));
  }
  if (type == "Replace") return make_replacer(config, message);
  Function function = make_function(config, message);
  return function ? std::make_shared<FunctionNormalizer>(std::move(function)) : nullptr;
}

}  // namespace tokenizers
