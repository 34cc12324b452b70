#include <executorch/devtools/inspect/budget.h>

namespace executorch::devtools {
namespace {

/// How many bytes the character at the beginning has; 0 if they are no UTF-8.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const size_t n = byte(0) < 0x80 ? 1 : byte(0) >> 5 == 6 ? 2 : byte(0) >> 4 == 14 ? 3 : 4;
  if (n == 1) return 1;
  if (n > text.size() || (n == 4 && byte(0) >> 3 != 30)) return 0;
  uint32_t code = byte(0) & (0x7fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if (byte(i) >> 6 != 2) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code >= kLeast[n] && code < 0x110000 && !is_surrogate ? n : 0;
}

}  // namespace

std::string Budget::clean(std::string_view text, bool keeps_space) {
  std::string out;
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    const char c = text[0];
    const bool is_space = keeps_space && (c == '\n' || c == '\t');
    const bool is_control = n == 1 && (static_cast<uint8_t>(c) < ' ' || c == '\x7f') && !is_space;
    if (n == 0 || is_control) {
      out += '?';
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

}  // namespace executorch::devtools
