#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cstring>

namespace tokenizers::utf8 {
namespace {

/// The first position from `at` on whose byte is not ASCII, or the end.
const char* skip_ascii(const char* at, const char* end) {
  while (end - at >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    if (word & 0x8080808080808080u) break;
    at += 8;
  }
  while (at < end && static_cast<uint8_t>(*at) < 0x80) ++at;
  return at;
}

}  // namespace

bool is_valid(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = skip_ascii(text.data(), end); at < end; at = skip_ascii(at, end)) {
    const Character c = decode(at, end);
    if (!c.valid) return false;
    at += c.length;
  }
  return true;
}

std::string valid(std::string_view text) {
  if (is_valid(text)) return std::string(text);
  std::string result;
  result.reserve(text.size() + 16);
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const Character c = decode(at, end);
    if (c.valid) {
      result.append(at, c.length);
    } else {
      append(result, kReplacement);
    }
    at += c.length;
  }
  return result;
}

std::string_view valid(const std::string& text, std::string& replaced) {
  if (is_valid(text)) return text;
  replaced = valid(text);
  return replaced;
}

size_t incomplete_tail(std::string_view text) {
  const char* const end = text.data() + text.size();
  const size_t most = std::min<size_t>(text.size(), 3);
  for (size_t length = 1; length <= most; ++length) {
    const char* const start = end - length;
    const auto first = static_cast<uint8_t>(*start);
    if ((first & 0xc0) == 0x80) continue;
    // A start whose every byte is right so far, yet too short.
    const Character c = decode(start, end);
    return !c.valid && c.length == length && first >= 0xc2 && first <= 0xf4 ? length : 0;
  }
  return 0;
}

}  // namespace tokenizers::utf8
