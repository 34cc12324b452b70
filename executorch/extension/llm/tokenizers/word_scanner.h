#pragma once

#include <executorch/extension/llm/tokenizers/regex_program.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <optional>
#include <string_view>

namespace tokenizers {

/// The differences between the well-known patterns that cut text into words before byte pair
/// encoding.
struct WordPattern {
  enum class Letters {
    /// ` ?\p{L}+`
    kAfterSpace,
    /// `[^\r\n\p{L}\p{N}]?\p{L}+`
    kAfterAny,
    /// `[^\r\n\p{L}\p{N}]?`, capitals, then small letters; with marks.
    kByCase,
  };
  enum class Contractions {
    kNone,
    /// `'s` and its like are words of their own
    kExact,
    kAnyCase,
    /// contractions belong to the word in front of them
    kBehindWord,
  };
  Letters letters;
  Contractions contractions;
  /// The most digits in one word; 0: any number, and a space may be in front.
  int digits;
  /// What may follow the symbols of a word: `[\r
  /// ]*`, and `/` too.
  bool newlines_after_symbols;
  bool slashes_after_symbols;
  /// `\s*[\r\n]+` before other spaces.
  bool newlines_are_words;
  /// `\s++$` before those.
  bool last_spaces_together;
};

/// The pattern, where `regex` is one of those that scan_words() knows.
std::optional<WordPattern> known_pattern(std::string_view regex,
                                         regex::Dialect dialect = regex::Dialect::kRust);

namespace internal {

struct WordScanner {
  const WordPattern pattern;
  const char* const end;

  uint8_t class_at(const char* at, uint32_t& length) const {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80) {
      length = 1;
      return unicode::internal::tables.ascii_scan[byte];
    }
    const utf8::Character c = utf8::decode(at, end);
    length = c.length;
    return unicode::scan_class(c.code_point);
  }
  uint8_t class_at(const char* at) const {
    uint32_t length;
    return at < end ? class_at(at, length) : 0;
  }
  /// The end of the characters from `at` on that have one of `bits`.
  const char* skip(const char* at, uint8_t bits) const {
    uint32_t length;
    while (at < end && (class_at(at, length) & bits) != 0) at += length;
    return at;
  }
  const char* skip_symbols(const char* at) const {
    uint32_t length;
    while (at < end &&
           (class_at(at, length) & (unicode::kLetter | unicode::kNumber | unicode::kSpace)) == 0) {
      at += length;
    }
    return at;
  }
  const char* contraction(const char* at, bool any_case) const;
  const char* by_case(const char* at) const;
  const char* case_run(const char* at, bool needs_small) const;
  const char* spaces(const char* at) const;

  /// The end of the word at `at`.
  template <WordPattern::Letters kLetters>
  const char* word(const char* at) const {
    using Letters = WordPattern::Letters;
    if (*at == '\'' && (pattern.contractions == WordPattern::Contractions::kExact ||
                        pattern.contractions == WordPattern::Contractions::kAnyCase)) {
      const char* const after =
          contraction(at, pattern.contractions == WordPattern::Contractions::kAnyCase);
      if (after != nullptr) return after;
    }
    uint32_t length;
    const uint8_t first = class_at(at, length);
    const char* const next = at + length;
    if constexpr (kLetters == Letters::kByCase) {
      if (const char* const after = by_case(at)) return after;
    } else {
      if (first & unicode::kLetter) return skip(next, unicode::kLetter);
      const bool may_lead = kLetters == Letters::kAfterSpace
                                ? *at == ' '
                                : (first & (unicode::kNumber | unicode::kNewline)) == 0;
      if (may_lead && (class_at(next) & unicode::kLetter)) return skip(next, unicode::kLetter);
    }
    if (first & unicode::kNumber) return digits(next);
    if (*at == ' ' && next < end) {
      const uint8_t second = class_at(next);
      if (pattern.digits == 0 && (second & unicode::kNumber)) return digits(next);
      if ((second & (unicode::kLetter | unicode::kNumber | unicode::kSpace)) == 0) {
        return after_symbols(skip_symbols(next));
      }
    } else if ((first & unicode::kSpace) == 0) {
      return after_symbols(skip_symbols(at));
    }
    return spaces(at);
  }

  const char* digits(const char* at) const {
    if (pattern.digits == 0) return skip(at, unicode::kNumber);
    uint32_t length;
    for (int n = 1; n < pattern.digits && at < end && (class_at(at, length) & unicode::kNumber);
         ++n) {
      at += length;
    }
    return at;
  }
  const char* after_symbols(const char* at) const {
    if (pattern.newlines_after_symbols) {
      while (at < end &&
             (*at == '\r' || *at == '\n' || (pattern.slashes_after_symbols && *at == '/'))) {
        ++at;
      }
    }
    return at;
  }
};

}  // namespace internal

/// Gives every word of valid UTF-8 to `use(std::string_view)`; together they are the text.
template <typename Use>
void scan_words(const WordPattern& pattern, std::string_view text, const Use& use) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const internal::WordScanner scanner{pattern, end};
  const auto run = [&](auto letters) {
    while (at < end) {
      const char* const after = scanner.word<decltype(letters)::value>(at);
      use(std::string_view(at, static_cast<size_t>(after - at)));
      at = after;
    }
  };
  using Letters = WordPattern::Letters;
  switch (pattern.letters) {
    case Letters::kAfterSpace:
      run(std::integral_constant<Letters, Letters::kAfterSpace>());
      break;
    case Letters::kAfterAny:
      run(std::integral_constant<Letters, Letters::kAfterAny>());
      break;
    case Letters::kByCase:
      run(std::integral_constant<Letters, Letters::kByCase>());
      break;
  }
}

}  // namespace tokenizers
