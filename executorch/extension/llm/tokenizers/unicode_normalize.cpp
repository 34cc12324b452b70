#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/unicode_maps.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>

namespace tokenizers::unicode {
namespace {

// Hangul syllables are composed and decomposed by arithmetic (Unicode standard, section 3.12).
constexpr uint32_t kLead = 0x1100;
constexpr uint32_t kVowel = 0x1161;
constexpr uint32_t kTail = 0x11a7;
constexpr uint32_t kSyllables = 0xac00;
constexpr uint32_t kVowels = 21;
constexpr uint32_t kTails = 28;
constexpr uint32_t kSyllableCount = 19 * kVowels * kTails;

bool is_syllable(uint32_t c) {
  return c >= kSyllables && c < kSyllables + kSyllableCount;
}

void decompose(uint32_t c, bool compatible, std::u32string& out) {
  if (c < 0xa0) {
    out += static_cast<char32_t>(c);
    return;
  }
  if (is_syllable(c)) {
    const uint32_t index = c - kSyllables;
    out += static_cast<char32_t>(kLead + index / (kVowels * kTails));
    out += static_cast<char32_t>(kVowel + index / kTails % kVowels);
    if (index % kTails != 0) out += static_cast<char32_t>(kTail + index % kTails);
    return;
  }
  const Maps& m = maps();
  if (compatible) {
    if (const auto found = m.compatible.find(c); found != m.compatible.end()) {
      out += found->second;
      return;
    }
  }
  const auto found = m.canonical.find(c);
  if (found != m.canonical.end()) {
    out += found->second;
  } else {
    out += static_cast<char32_t>(c);
  }
}

/// Marks between two starters go in order of their combining classes.
void reorder(std::u32string& text) {
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(i),
                     text.begin() + static_cast<std::ptrdiff_t>(end), [](char32_t a, char32_t b) {
                       return combining_class(a) < combining_class(b);
                     });
    i = end;
  }
}

/// What the pair composes to, or 0.
uint32_t composition(uint32_t first, uint32_t second) {
  if (first - kLead < 19 && second - kVowel < kVowels) {
    return kSyllables + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
  }
  if (is_syllable(first) && (first - kSyllables) % kTails == 0 && second > kTail &&
      second < kTail + kTails) {
    return first + (second - kTail);
  }
  const auto found = maps().compositions.find(static_cast<uint64_t>(first) << 32 | second);
  return found == maps().compositions.end() ? 0 : found->second;
}

void compose(std::u32string& text) {
  size_t written = 0;
  size_t starter = std::u32string::npos;
  uint8_t last_class = 0;
  for (const char32_t c : text) {
    const uint8_t own_class = combining_class(c);
    // A mark between the starter and this one blocks it if its class is not smaller.
    const bool next_to_it = starter != std::u32string::npos && written == starter + 1;
    const bool blocked = !next_to_it && (last_class >= own_class);
    if (starter != std::u32string::npos && !blocked) {
      if (const uint32_t composed = composition(text[starter], c)) {
        text[starter] = static_cast<char32_t>(composed);
        continue;
      }
    }
    if (own_class == 0) starter = written;
    last_class = own_class;
    text[written++] = c;
  }
  text.resize(written);
}

/// Whether a text of such characters only is already in the normal form.
bool stays(uint32_t c, Form form) {
  if (c < 0xa0 || (c < 0x300 && form == Form::kNfc)) return true;
  const Maps& m = maps();
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  if (combining_class(c) != 0 || (compatible && m.compatible.count(c) != 0)) return false;
  if (form == Form::kNfd || form == Form::kNfkd) {
    return !is_syllable(c) && m.canonical.count(c) == 0;
  }
  if ((c >= kVowel && c < kTail + kTails) || m.seconds.count(c) != 0) return false;
  const auto found = m.canonical.find(c);
  if (found == m.canonical.end()) return true;
  // Some characters decompose, and their parts do not compose to them again.
  std::u32string again = found->second;
  compose(again);
  return again.size() == 1 && again[0] == c;
}

}  // namespace

std::string normalize(std::string_view text, Form form) {
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  while (at < end) {
    const utf8::Character c = utf8::decode(at, end);
    if (!stays(c.code_point, form)) break;
    at += c.length;
  }
  if (at == end) return std::string(text);
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  std::u32string characters;
  for (at = text.data(); at < end;) {
    const utf8::Character c = utf8::decode(at, end);
    decompose(c.code_point, compatible, characters);
    at += c.length;
  }
  reorder(characters);
  if (form == Form::kNfc || form == Form::kNfkc) compose(characters);
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : characters) utf8::append(result, c);
  return result;
}

size_t grapheme_length(std::string_view text) {
  enum Break : uint8_t {
    kOther,
    kCr,
    kLf,
    kControlBreak,
    kExtend,
    kZwj,
    kRegional,
    kPrepend,
    kSpacing,
    kL,
    kV,
    kT,
    kLv,
    kLvt,
    kPictographic
  };
  const std::vector<uint8_t>& breaks = maps().breaks;
  const char* const end = text.data() + text.size();
  utf8::Character c = utf8::decode(text.data(), end);
  const char* at = text.data() + c.length;
  uint8_t before = breaks[c.code_point];
  bool picture = before == kPictographic;
  bool picture_and_joiner = false;
  size_t regional = before == kRegional ? 1 : 0;
  while (at < end) {
    c = utf8::decode(at, end);
    const uint8_t now = breaks[c.code_point];
    const auto controls = [](uint8_t b) { return b == kCr || b == kLf || b == kControlBreak; };
    bool joins = false;
    if (controls(before) || controls(now)) {
      joins = before == kCr && now == kLf;
    } else if (before == kL) {
      joins = now == kL || now == kV || now == kLv || now == kLvt;
    } else if (before == kLv || before == kV) {
      joins = now == kV || now == kT;
    } else if (before == kLvt || before == kT) {
      joins = now == kT;
    }
    if (!controls(before)) {
      joins |= now == kExtend || now == kZwj || now == kSpacing;
      joins |= before == kPrepend && !controls(now);
      joins |= picture_and_joiner && now == kPictographic;
      joins |= regional % 2 == 1 && before == kRegional && now == kRegional;
    }
    if (!joins) break;
    picture_and_joiner = picture && now == kZwj;
    picture = now == kPictographic || (picture && now == kExtend);
    regional = now == kRegional ? regional + 1 : 0;
    before = now;
    at += c.length;
  }
  return static_cast<size_t>(at - text.data());
}

}  // namespace tokenizers::unicode
