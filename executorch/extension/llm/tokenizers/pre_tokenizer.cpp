#include <executorch/extension/llm/tokenizers/pre_tokenizer.h>

#include <executorch/extension/llm/tokenizers/byte_level_bpe.h>
#include <executorch/extension/llm/tokenizers/known_patterns.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>
#include <executorch/extension/llm/tokenizers/utf8.h>
#include <executorch/extension/llm/tokenizers/word_scanner.h>

#include <algorithm>
#include <functional>

namespace tokenizers {
namespace {

using Pieces = std::vector<std::string>;
/// Cuts one piece and appends the results. The second argument is `front` of split(), for this
/// piece before the call and for its pieces after it.
using Function = std::function<bool(const std::string&, size_t&, Pieces&)>;

class FunctionPreTokenizer : public PreTokenizer {
 public:
  explicit FunctionPreTokenizer(Function function) : function_(std::move(function)) {}
  bool split(Pieces& pieces, size_t& front) const override {
    Pieces result;
    result.reserve(pieces.size());
    size_t before = front;
    front = 0;
    for (const std::string& piece : pieces) {
      size_t here = std::min(before, piece.size());
      before -= here;
      if (!function_(piece, here, result)) return false;
      front += here;
    }
    pieces = std::move(result);
    return true;
  }

 private:
  Function function_;
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<Ptr> steps) : steps_(std::move(steps)) {}
  bool split(Pieces& pieces, size_t& front) const override {
    // Steps that spell bytes as characters lengthen the text; several of them would do so
    // exponentially.
    const size_t most = kMostGrowth * bytes_of(pieces) + 4096;
    for (const Ptr& step : steps_) {
      if (!step->split(pieces, front) || bytes_of(pieces) > most) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kMostGrowth = 16;
  static size_t bytes_of(const Pieces& pieces) {
    size_t bytes = 0;
    for (const std::string& piece : pieces) bytes += piece.size();
    return bytes;
  }

  std::vector<Ptr> steps_;
};

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

bool behavior_of(const std::string& name, Behavior& behavior) {
  constexpr std::pair<const char*, Behavior> kNames[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous}};
  for (const auto& [known, value] : kNames) {
    if (name == known) {
      behavior = value;
      return true;
    }
  }
  return false;
}

struct Span {
  size_t begin;
  size_t end;
  bool matched;
};

void add(const std::string& text, size_t begin, size_t end, Pieces& out) {
  if (end > begin) out.emplace_back(text, begin, end - begin);
}

/// Pieces of the spans, which cover the text.
void cut(const std::string& text, const std::vector<Span>& spans, Behavior behavior, size_t& front,
         Pieces& out) {
  size_t begin = 0;
  bool last_matched = false;
  switch (behavior) {
    case Behavior::kRemoved: {
      size_t kept = 0;
      for (const Span& span : spans) {
        if (!span.matched) {
          add(text, span.begin, span.end, out);
          kept += std::min(span.end, front) - std::min(span.begin, front);
        }
      }
      front = kept;
      return;
    }
    case Behavior::kIsolated:
      for (const Span& span : spans) add(text, span.begin, span.end, out);
      return;
    case Behavior::kMergedWithPrevious:
      for (const Span& span : spans) {
        if (!span.matched || last_matched) {
          add(text, begin, span.begin, out);
          begin = span.begin;
        }
        last_matched = span.matched;
      }
      break;
    case Behavior::kMergedWithNext:
      for (const Span& span : spans) {
        if (span.matched || !last_matched) {
          add(text, begin, span.begin, out);
          begin = span.begin;
        }
        last_matched = span.matched;
      }
      break;
    case Behavior::kContiguous:
      for (const Span& span : spans) {
        if (span.matched != last_matched) {
          add(text, begin, span.begin, out);
          begin = span.begin;
        }
        last_matched = span.matched;
      }
      break;
  }
  add(text, begin, text.size(), out);
}

/// Cuts at characters for which `matches` is true.
template <typename Matches>
Function by_character(Behavior behavior, Matches matches) {
  return [=](const std::string& text, size_t& front, Pieces& out) {
    std::vector<Span> spans;
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* at = begin; at < end;) {
      const utf8::Character c = utf8::decode(at, end);
      const auto start = static_cast<size_t>(at - begin);
      const bool matched = matches(c.code_point);
      if (!matched && !spans.empty() && !spans.back().matched) {
        spans.back().end += c.length;
      } else {
        spans.push_back({start, start + c.length, matched});
      }
      at += c.length;
    }
    cut(text, spans, behavior, front, out);
    return true;
  };
}

Function by_text(const std::string& wanted, Behavior behavior, bool invert) {
  return [=](const std::string& text, size_t& front, Pieces& out) {
    std::vector<Span> spans;
    size_t start = 0;
    for (size_t found; !wanted.empty() && (found = text.find(wanted, start)) != std::string::npos;
         start = found + wanted.size()) {
      if (found > start) spans.push_back({start, found, invert});
      spans.push_back({found, found + wanted.size(), !invert});
    }
    if (start < text.size()) spans.push_back({start, text.size(), invert});
    cut(text, spans, behavior, front, out);
    return true;
  };
}

Function by_regex(const std::string& pattern, regex::Dialect dialect, Behavior behavior,
                  bool invert, std::string& message) {
  const std::optional<WordPattern> known = known_pattern(pattern, dialect);
  if (known && !invert && behavior == Behavior::kIsolated) {
    return [known](const std::string& text, size_t&, Pieces& out) {
      scan_words(*known, text, [&](std::string_view word) { out.emplace_back(word); });
      return true;
    };
  }
  const auto regex = std::make_shared<UnicodeRegex>();
  if (regex->compile(pattern, dialect) != Error::Ok) {
    message = "Split: " + regex->message();
    return nullptr;
  }
  return [=](const std::string& text, size_t& front, Pieces& out) {
    std::vector<Match> matches;
    if (!regex->find_all(std::string_view(text), matches)) return false;
    std::vector<Span> spans;
    size_t start = 0;
    for (const Match& match : matches) {
      if (match.start > start) spans.push_back({start, match.start, invert});
      spans.push_back({match.start, match.end, !invert});
      start = match.end;
    }
    if (start < text.size()) spans.push_back({start, text.size(), invert});
    cut(text, spans, behavior, front, out);
    return true;
  };
}

Function split(const Json& config, std::string& message) {
  Behavior behavior = Behavior::kRemoved;
  const std::string name = string_at(config, "behavior");
  if (!name.empty() && !behavior_of(name, behavior)) {
    message = "Split: unknown behavior";
    return nullptr;
  }
  const TextPattern pattern = pattern_at(config, "pattern");
  // Without "behavior", a text pattern separates pieces, and a regular expression matches them.
  const bool invert = bool_at(config, "invert", name.empty() && pattern.is_regex);
  return pattern.is_regex
             ? by_regex(pattern.text, regex::Dialect::kOniguruma, behavior, invert, message)
             : by_text(pattern.text, behavior, invert);
}

Function metaspace(const Json& config) {
  const std::string space = string_at(config, "replacement", "\u2581");
  const bool prefix = bool_at(config, "add_prefix_space", true);
  const std::string scheme = string_at(config, "prepend_scheme", prefix ? "always" : "never");
  const bool splits = bool_at(config, "split", true);
  const Function cutter = by_text(space, Behavior::kMergedWithNext, false);
  return [=](const std::string& text, size_t& front, Pieces& out) {
    std::string replaced;
    const size_t before = front;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') {
        replaced += space;
        front += i < before ? space.size() - 1 : 0;
      } else {
        replaced += text[i];
      }
    }
    const bool wanted = scheme == "always" || (scheme == "first" && front > 0);
    if (wanted && replaced.compare(0, space.size(), space) != 0) {
      replaced.insert(0, space);
      front += front > 0 ? space.size() : 0;
    }
    if (splits) return cutter(replaced, front, out);
    add(replaced, 0, replaced.size(), out);
    return true;
  };
}

Function byte_level(const Json& config, std::string& message) {
  const bool prefix = bool_at(config, "add_prefix_space", true);
  const bool splits = bool_at(config, "use_regex", true);
  const WordPattern pattern = *known_pattern(patterns::kGpt2);
  const TextPattern other = pattern_at(config, "pattern");
  const auto spaced = [prefix](const std::string& text) {
    return prefix && (text.empty() || text[0] != ' ') ? " " + text : text;
  };
  // A space added in front counts as part of the first character.
  const auto spelled = [](size_t front, const std::string& text, const std::string& with_space) {
    const size_t bytes = front == 0 ? 0 : front + with_space.size() - text.size();
    return byte_alphabet::encode(with_space.substr(0, bytes)).size();
  };
  if (splits && !other.text.empty()) {
    const Function cutter =
        by_regex(other.text, regex::Dialect::kRust, Behavior::kIsolated, false, message);
    if (!cutter) return nullptr;
    return [=](const std::string& text, size_t& front, Pieces& out) {
      Pieces words;
      const std::string with_space = spaced(text);
      const bool done = cutter(with_space, front, words);
      front = spelled(front, text, with_space);
      for (const std::string& word : words) out.push_back(byte_alphabet::encode(word));
      return done;
    };
  }
  return [=](const std::string& text, size_t& front, Pieces& out) {
    const std::string with_space = spaced(text);
    front = spelled(front, text, with_space);
    if (splits) {
      scan_words(pattern, with_space,
                 [&](std::string_view word) { out.push_back(byte_alphabet::encode(word)); });
    } else {
      out.push_back(byte_alphabet::encode(with_space));
    }
    return true;
  };
}

Function by_script() {
  return [](const std::string& text, size_t& front, Pieces& out) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    size_t start = 0;
    uint8_t last = 0;
    for (const char* at = begin; at < end;) {
      const utf8::Character c = utf8::decode(at, end);
      const uint8_t script = c.code_point == ' ' ? 0 : unicode::script(c.code_point);
      if (script != 0 && script != last) {
        // Characters before the first one that has a script are dropped, as the reference does.
        if (last != 0) {
          add(text, start, static_cast<size_t>(at - begin), out);
        } else {
          front -= std::min(front, static_cast<size_t>(at - begin));
        }
        start = static_cast<size_t>(at - begin);
      }
      last = script == 0 ? last : script;
      at += c.length;
    }
    if (last != 0) {
      add(text, start, text.size(), out);
    } else {
      front = 0;
    }
    return true;
  };
}

Function bert() {
  const Function words = by_character(Behavior::kRemoved, unicode::is_space);
  const Function marks = by_character(Behavior::kIsolated, [](uint32_t c) {
    return (unicode::properties(c) & unicode::kPunctuation) != 0;
  });
  return [=](const std::string& text, size_t& front, Pieces& out) {
    Pieces pieces;
    words(text, front, pieces);
    for (const std::string& piece : pieces) marks(piece, front, out);
    return true;
  };
}

/// Pieces of `length` characters; the last one may have fewer.
Function by_length(uint64_t length) {
  return [=](const std::string& text, size_t&, Pieces& out) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    size_t start = 0;
    uint64_t n_characters = 0;
    for (const char* at = begin; at < end;) {
      at += utf8::decode(at, end).length;
      if (++n_characters % length == 0) {
        add(text, start, static_cast<size_t>(at - begin), out);
        start = static_cast<size_t>(at - begin);
      }
    }
    add(text, start, text.size(), out);
    return true;
  };
}

Function make_function(const Json& config, std::string& message) {
  const std::string type = string_at(config, "type");
  if (type == "ByteLevel") return byte_level(config, message);
  if (type == "Split") return split(config, message);
  if (type == "Whitespace") {
    return by_regex(R"(\w+|[^\w\s]+)", regex::Dialect::kRust, Behavior::kRemoved, true, message);
  }
  if (type == "WhitespaceSplit") return by_character(Behavior::kRemoved, unicode::is_space);
  if (type == "Metaspace") return metaspace(config);
  if (type == "Digits") {
    const bool each = bool_at(config, "individual_digits", false);
    return by_character(each ? Behavior::kIsolated : Behavior::kContiguous, [](uint32_t c) {
      return (unicode::properties(c) & unicode::kNumeric) != 0;
    });
  } else if (type == "Punctuation") {
    Behavior behavior = Behavior::kIsolated;
    if (!behavior_of(string_at(config, "behavior", "Isolated"), behavior)) {
      message = "Punctuation: unknown behavior";
      return nullptr;
    }
    return by_character(
        behavior, [](uint32_t c) { return (unicode::properties(c) & unicode::kPunctuation) != 0; });
  } else if (type == "BertPreTokenizer") {
    return bert();
  } else if (type == "UnicodeScripts") {
    return by_script();
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = string_at(config, "delimiter");
    if (delimiter.empty()) {
      message = "CharDelimiterSplit: no delimiter";
      return nullptr;
    }
    return by_text(delimiter, Behavior::kRemoved, false);
  } else if (type == "FixedLength") {
    const Json& length = at(config, "length");
    if (!length.is_null() && (!is_count(length) || length == 0)) {
      message = "FixedLength: the length is not a positive number";
      return nullptr;
    }
    return by_length(length.is_null() ? 5 : length.get<uint64_t>());
  }
  message = "unknown pre-tokenizer " + type;
  return nullptr;
}

}  // namespace

PreTokenizer::Ptr make_pre_tokenizer(const Json& config, std::string& message, int depth) {
  if (depth > 20) {
    message = "pre-tokenizers are nested too deeply";
    return nullptr;
  }
  if (string_at(config, "type") == "Sequence") {
    std::vector<PreTokenizer::Ptr> steps;
    for (const Json& step : at(config, "pretokenizers")) {
      steps.push_back(make_pre_tokenizer(step, message, depth + 1));
      if (steps.back() == nullptr) return nullptr;
    }
    return std::make_shared<SequencePreTokenizer>(std::move(steps));
  }
  Function function = make_function(config, message);
  return function ? std::make_shared<FunctionPreTokenizer>(std::move(function)) : nullptr;
}

}  // namespace tokenizers
