#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokenizers::utf8 {

inline constexpr uint32_t kReplacement = 0xfffd;

struct Character {
  uint32_t code_point;
  /// Bytes that it takes; at least 1.
  uint32_t length;
  bool valid;
};

/// The character at the front of `[text, end)`, which is not empty. Bytes that are no UTF-8 give
/// U+FFFD; its length then is that of the longest start of a character, as the Unicode standard
/// recommends (section 3.9, substitution of maximal subparts).
inline Character decode(const char* text, const char* end) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const size_t available = static_cast<size_t>(end - text);
  // The second byte's range depends on the first: no overlong forms, surrogates, or beyond
  // U+10FFFF.
  uint32_t low = 0x80;
  uint32_t high = 0xbf;
  uint32_t length = 0;
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    low = first == 0xe0 ? 0xa0 : low;
    high = first == 0xed ? 0x9f : high;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    low = first == 0xf0 ? 0x90 : low;
    high = first == 0xf4 ? 0x8f : high;
  } else {
    return {kReplacement, 1, false};
  }
  uint32_t code_point = first & (0x7f >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if (i >= available || byte(i) < low || byte(i) > high) return {kReplacement, i, false};
    code_point = code_point << 6 | (byte(i) & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return {code_point, length, true};
}

/// Bytes of the character that starts with `first`, in valid UTF-8.
inline uint32_t length_of(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

inline void append(std::string& text, uint32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    text += static_cast<char>(0xe0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | c >> 18);
    text += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (c & 0x3f));
  }
}

bool is_valid(std::string_view text);

/// `text` with U+FFFD in place of what is no UTF-8.
std::string valid(std::string_view text);

/// The same, where it lies if it is UTF-8, else in `replaced`.
std::string_view valid(const std::string& text, std::string& replaced);

/// How many bytes at the end of `text` are the start of a character that more bytes can complete.
size_t incomplete_tail(std::string_view text);

}  // namespace tokenizers::utf8
