#include <executorch/extension/llm/jinja/text.h>

#include <executorch/extension/llm/jinja/value.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace executorch::extension::llm::jinja {
namespace {

namespace unicode = ::tokenizers::unicode;
namespace utf8 = ::tokenizers::utf8;

utf8::Character character(std::string_view text) {
  auto found = utf8::decode(text.data(), text.data() + text.size());
  if (!found.valid) found.length = 1;
  return found;
}

/// Of the character at the beginning.
size_t n_bytes(std::string_view text) {
  return static_cast<uint8_t>(text[0]) < 0x80 ? 1 : character(text).length;
}

bool has_case(uint32_t c) {
  const auto category = unicode::category(c);
  return category == unicode::kUppercase || category == unicode::kLowercase ||
         category == unicode::kTitlecase || unicode::same_but_for_case(c).size() > 1;
}

bool is_printable(uint32_t c) {
  switch (unicode::category(c)) {
    case unicode::kUnassigned:
    case unicode::kControl:
    case unicode::kFormat:
    case unicode::kSurrogate:
    case unicode::kPrivateUse:
    case unicode::kSpaceSeparator:
    case unicode::kLineSeparator:
    case unicode::kParagraphSeparator:
      return c == ' ';
    default:
      return true;
  }
}

std::string hexadecimal(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    found.push_back(first_character(text));
    text.remove_prefix(found.back().size());
  }
  return found;
}

size_t n_characters(std::string_view text) {
  size_t n = 0;
  for (; !text.empty(); ++n) text.remove_prefix(n_bytes(text));
  return n;
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, n_bytes(text));
}

std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && (text[begin] & 0xc0) == 0x80) --begin;
  const auto last = character(text.substr(begin));
  const bool ends_there = last.valid && begin + last.length == text.size();
  return text.substr(ends_there ? begin : text.size() - 1);
}

bool is_space(uint32_t c) {
  return (c >= 0x1c && c <= 0x1f) || unicode::is_space(c);
}

bool is_all_space(std::string_view text) {
  return strip(text, Side::Left).empty();
}

std::string_view strip(std::string_view text, Side side) {
  if (side != Side::Right) {
    while (!text.empty()) {
      const auto first = character(text);
      if (!first.valid || !is_space(first.code_point)) break;
      text.remove_prefix(first.length);
    }
  }
  while (side != Side::Left && !text.empty()) {
    const std::string_view end = last_character(text);
    const auto last = character(end);
    if (!last.valid || !is_space(last.code_point)) break;
    text.remove_suffix(end.size());
  }
  return text;
}

std::string_view strip(std::string_view text, std::string_view set, Side side) {
  auto stripped = characters(set);
  std::sort(stripped.begin(), stripped.end());
  const auto is_stripped = [&](std::string_view one) {
    return std::binary_search(stripped.begin(), stripped.end(), one);
  };
  while (side != Side::Right && !text.empty() && is_stripped(first_character(text))) {
    text.remove_prefix(first_character(text).size());
  }
  while (side != Side::Left && !text.empty() && is_stripped(last_character(text))) {
    text.remove_suffix(last_character(text).size());
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto c = character(text);
    if (c.code_point == 0x3a3) fail_unsupported("lower case of a capital sigma");
    if (c.valid) {
      unicode::append_lower(result, c.code_point);
    } else {
      result += text[0];
    }
    text.remove_prefix(c.length);
  }
  return result;
}

std::string upper(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto c = character(text);
    if (c.valid && c.code_point >= 128 && has_case(c.code_point)) {
      fail_unsupported("upper case of '" + std::string(text.substr(0, c.length)) +
                       "', a letter beyond ASCII");
    }
    const bool is_small = text[0] >= 'a' && text[0] <= 'z';
    result += is_small ? static_cast<char>(text[0] - 'a' + 'A') : text[0];
    result += text.substr(1, c.length - 1);
    text.remove_prefix(c.length);
  }
  return result;
}

void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& each) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const auto c = character(text.substr(at));
    const uint32_t code = c.valid ? c.code_point : 0;
    const size_t end = at;
    at += c.length;
    const bool is_end = (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) ||
                        code == 0x85 || code == 0x2028 || code == 0x2029;
    if (!is_end) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    each(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) each(text.substr(begin));
}

std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != text.npos;
  const char quote = has_single && text.find('"') == text.npos ? '"' : '\'';
  std::string result(1, quote);
  while (!text.empty()) {
    const auto c = character(text);
    const uint32_t code = c.valid ? c.code_point : static_cast<uint8_t>(text[0]);
    if (code == static_cast<uint8_t>(quote) || code == '\\') {
      (result += '\\') += text[0];
    } else if (code == '\n' || code == '\r' || code == '\t') {
      (result += '\\') += code == '\n' ? 'n' : code == '\r' ? 'r' : 't';
    } else if (c.valid && is_printable(code)) {
      result += text.substr(0, c.length);
    } else {
      result += hexadecimal(code < 0x100     ? "\\x%02x"
                            : code < 0x10000 ? "\\u%04x"
                                             : "\\U%08x",
                            code);
    }
    text.remove_prefix(c.length);
  }
  return result + quote;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[400];
  // The shortest digits that give the number back; Python changes to exponents at 1e16 and 1e-4.
  const double magnitude = std::abs(value);
  const bool is_plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  std::string text(buffer, end.ptr);
  if (is_plain && text.find('.') == text.npos) text += ".0";
  return text;
}

std::string json_quoted(std::string_view text, bool ascii_only) {
  std::string result = "\"";
  while (!text.empty()) {
    const auto c = character(text);
    const uint32_t code = c.code_point;
    const size_t escape = std::string_view("\"\\\n\r\t\b\f").find(text[0]);
    if (escape != std::string_view::npos) {
      (result += '\\') += "\"\\nrtbf"[escape];
    } else if (code < 0x20) {
      result += hexadecimal("\\u%04x", code);
    } else if (ascii_only && code >= 0x10000) {
      result += hexadecimal("\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
      result += hexadecimal("\\u%04x", 0xdc00 + ((code - 0x10000) & 0x3ff));
    } else if (code >= 0x80 && ascii_only) {
      result += hexadecimal("\\u%04x", code);
    } else {
      result += text.substr(0, c.length);
    }
    text.remove_prefix(c.length);
  }
  return result + '"';
}

}  // namespace executorch::extension::llm::jinja
