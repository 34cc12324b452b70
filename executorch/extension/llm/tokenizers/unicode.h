#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers::unicode {

/// General categories. Their numbers are those of make_unicode_tables.py.
enum Category : uint8_t {
  kUnassigned,
  kUppercase,
  kLowercase,
  kTitlecase,
  kModifierLetter,
  kOtherLetter,
  kNonspacingMark,
  kSpacingMark,
  kEnclosingMark,
  kDecimalDigit,
  kLetterNumber,
  kOtherNumber,
  kConnector,
  kDash,
  kOpen,
  kClose,
  kInitialQuote,
  kFinalQuote,
  kOtherPunctuation,
  kMath,
  kCurrency,
  kModifierSymbol,
  kOtherSymbol,
  kSpaceSeparator,
  kLineSeparator,
  kParagraphSeparator,
  kControl,
  kFormat,
  kSurrogate,
  kPrivateUse,
  kCategories
};

/// Bits of properties() above the category's five.
enum Flag : uint32_t {
  kHan = 32 << 0,
  kNumeric = 32 << 1,
  /// As Bert's pre-tokenizer sees it.
  kPunctuation = 32 << 2,
  kAccent = 32 << 3,
  /// What Bert's normalizer removes.
  kUnclean = 32 << 4,
  kChinese = 32 << 5,
  kWord = 32 << 6,
  /// An accent as Bert's normalizer sees it: fewer characters.
  kBertAccent = 32 << 7,
  /// [[:alpha:]], [[:upper:]], [[:lower:]] and [[:word:]] of Oniguruma.
  kOnigurumaAlpha = 32 << 8,
  kOnigurumaUpper = 32 << 9,
  kOnigurumaLower = 32 << 10,
  kOnigurumaWord = 32 << 11,
};

/// Bits of scan_class(), for scanners of words.
enum ScanClass : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kSpace = 4,
  /// Lu Lt Lm Lo M, which may start a word, and Ll Lm Lo M, which may go on in it.
  kStart = 8,
  kGoOn = 16,
  /// Carriage return and line feed; spaces too.
  kNewline = 32,
};

namespace internal {
struct Tables {
  uint16_t block_of[0x110000 >> 7];
  std::vector<uint8_t> class_of;
  uint32_t properties[256];
  uint8_t scan[256];
  uint8_t ascii_scan[128];
};
extern const Tables& tables;
}  // namespace internal

/// Category and flags of any number; numbers beyond U+10FFFF are unassigned.
inline uint32_t properties(uint32_t c) {
  const internal::Tables& t = internal::tables;
  return c >= 0x110000 ? 0 : t.properties[t.class_of[t.block_of[c >> 7] * 128u + (c & 127)]];
}
inline Category category(uint32_t c) {
  return static_cast<Category>(properties(c) & 31);
}
inline uint8_t scan_class(uint32_t c) {
  const internal::Tables& t = internal::tables;
  if (c < 128) return t.ascii_scan[c];
  if (c == 0x85) return kSpace;
  return c >= 0x110000 ? 0 : t.scan[t.class_of[t.block_of[c >> 7] * 128u + (c & 127)]];
}
inline bool is_space(uint32_t c) {
  return (scan_class(c) & kSpace) != 0;
}

/// The number of the character's script; 0 where it goes with every script.
uint8_t script(uint32_t c);
uint8_t combining_class(uint32_t c);
/// Appends the lower-case form.
void append_lower(std::string& text, uint32_t c);
/// A number that characters have in common which differ in case only.
uint32_t fold(uint32_t c);
/// All characters whose fold() is that of `c`.
std::vector<uint32_t> same_but_for_case(uint32_t c);

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
/// The normal form of valid UTF-8.
std::string normalize(std::string_view text, Form form);

/// Bytes of the first extended grapheme cluster of valid UTF-8, which is not empty.
size_t grapheme_length(std::string_view text);

}  // namespace tokenizers::unicode
