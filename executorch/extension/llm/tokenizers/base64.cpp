#include <executorch/extension/llm/tokenizers/base64.h>

#include <cstdint>

namespace base64 {
namespace {

/// The six bits of a digit, or 64.
uint32_t digit(char c) {
  return c >= 'A' && c <= 'Z'   ? static_cast<uint32_t>(c - 'A')
         : c >= 'a' && c <= 'z' ? static_cast<uint32_t>(c - 'a') + 26
         : c >= '0' && c <= '9' ? static_cast<uint32_t>(c - '0') + 52
         : c == '+'             ? 62
         : c == '/'             ? 63
                                : 64;
}

}  // namespace

tokenizers::Result<std::string> decode(const std::string_view& input) {
  if (input.empty() || input.size() % 4 != 0) return Error::Base64DecodeFailure;
  size_t digits = input.size();
  for (int i = 0; i < 2 && input[digits - 1] == '='; ++i) --digits;
  std::string bytes;
  bytes.reserve(input.size() / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < digits; ++i) {
    const uint32_t value = digit(input[i]);
    if (value == 64) return Error::Base64DecodeFailure;
    bits = bits << 6 | value;
    // Of every four digits, the second to the fourth complete a byte each.
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)));
  }
  return bytes;
}

}  // namespace base64
