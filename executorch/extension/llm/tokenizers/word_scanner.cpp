#include <executorch/extension/llm/tokenizers/word_scanner.h>

namespace tokenizers {
namespace {

using Letters = WordPattern::Letters;
using Contractions = WordPattern::Contractions;

struct Known {
  std::string_view regex;
  WordPattern pattern;
};

constexpr WordPattern kGpt2{
    Letters::kAfterSpace, Contractions::kExact, 0, false, false, false, false};
constexpr WordPattern kCl100k{
    Letters::kAfterAny, Contractions::kAnyCase, 3, true, false, true, true};
constexpr WordPattern kLlama3{
    Letters::kAfterAny, Contractions::kAnyCase, 3, true, false, true, false};
constexpr WordPattern kQwen2{
    Letters::kAfterAny, Contractions::kAnyCase, 1, true, false, true, false};
constexpr WordPattern kO200k{
    Letters::kByCase, Contractions::kBehindWord, 3, true, true, true, false};
constexpr WordPattern kTekken{Letters::kByCase, Contractions::kNone, 1, true, true, true, false};

constexpr Known kKnown[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", kGpt2},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)",
     kCl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kLlama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kQwen2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kO200k},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     kTekken},
};

}  // namespace

std::optional<WordPattern> known_pattern(std::string_view regex, regex::Dialect dialect) {
  // The scanners cut long numbers, which Oniguruma's {1,3}+ does not.
  if (dialect == regex::Dialect::kOniguruma && regex.find("}+") != std::string_view::npos) {
    return std::nullopt;
  }
  for (const Known& known : kKnown) {
    if (known.regex == regex) return known.pattern;
  }
  return std::nullopt;
}

namespace internal {

/// The end of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` at `at`, or null.
const char* WordScanner::contraction(const char* at, bool any_case) const {
  const auto letter = [&](const char*& position) -> uint32_t {
    if (position >= end) return 0;
    const utf8::Character c = utf8::decode(position, end);
    position += c.length;
    return any_case ? unicode::fold(c.code_point) : c.code_point;
  };
  const char* after = at + 1;
  const uint32_t first = letter(after);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return after;
  if (first != 'l' && first != 'r' && first != 'v') return nullptr;
  return letter(after) == (first == 'l' ? uint32_t{'l'} : uint32_t{'e'}) ? after : nullptr;
}

/// The end of a run of capitals and small letters as
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` matches it (needs_small), or
/// with `+` and `*` exchanged; null where there is none.
const char* WordScanner::case_run(const char* at, bool needs_small) const {
  const char* last_both = nullptr;
  const char* run = at;
  uint32_t length;
  while (run < end) {
    const uint8_t c = class_at(run, length);
    if ((c & unicode::kStart) == 0) break;
    last_both = c & unicode::kGoOn ? run + length : last_both;
    run += length;
  }
  if (!needs_small) return run == at ? nullptr : skip(run, unicode::kGoOn);
  const char* const small = skip(run, unicode::kGoOn);
  // If no small letter follows, the match ends after the last letter that may be either.
  return small != run ? small : last_both;
}

const char* WordScanner::by_case(const char* at) const {
  uint32_t length;
  const uint8_t first = class_at(at, length);
  const bool may_lead = (first & (unicode::kLetter | unicode::kNumber | unicode::kNewline)) == 0;
  for (const bool needs_small : {true, false}) {
    const char* after = may_lead ? case_run(at + length, needs_small) : nullptr;
    after = after == nullptr ? case_run(at, needs_small) : after;
    if (after != nullptr) {
      if (pattern.contractions == Contractions::kBehindWord && after < end && *after == '\'') {
        const char* const longer = contraction(after, true);
        return longer == nullptr ? after : longer;
      }
      return after;
    }
  }
  return nullptr;
}

/// The end of the word of white space at `at`: after the last line break; without one, before the
/// last character if a word follows.
const char* WordScanner::spaces(const char* at) const {
  const char* last = at;
  const char* newline = nullptr;
  const char* run = at;
  uint32_t length;
  while (run < end) {
    const uint8_t c = class_at(run, length);
    if ((c & unicode::kSpace) == 0) break;
    last = run;
    run += length;
    newline = c & unicode::kNewline ? run : newline;
  }
  if (pattern.last_spaces_together && run == end) return run;
  if (pattern.newlines_are_words && newline != nullptr) return newline;
  return run == end || last == at ? run : last;
}

}  // namespace internal
}  // namespace tokenizers
