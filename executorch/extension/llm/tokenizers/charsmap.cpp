#include <executorch/extension/llm/tokenizers/charsmap.h>

#include <cstring>

namespace tokenizers {

bool Charsmap::parse(std::string_view bytes) {
  units_.clear();
  replacements_.clear();
  if (bytes.empty()) return true;
  uint32_t size = 0;
  if (bytes.size() < 4) return false;
  std::memcpy(&size, bytes.data(), 4);
  if (size % 4 != 0 || size < 1024 || size > bytes.size() - 4) return false;
  units_.resize(size / 4);
  std::memcpy(units_.data(), bytes.data() + 4, size);
  replacements_ = bytes.substr(4 + size);
  return !replacements_.empty() && replacements_.back() == 0;
}

bool Charsmap::find(std::string_view text, bool longest, size_t& length,
                    std::string_view& replacement) const {
  // A unit holds its byte (bits 0-7), the distance to its children (10-30), scaled where bit 9 is
  // set, and whether a string ends (8); the unit of an end holds the value.
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  if (units_.empty()) return false;
  bool found = false;
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    const uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xff)) != byte) break;
    node ^= offset(unit);
    if ((unit >> 8 & 1) != 0) {
      const size_t value = node < units_.size() ? units_[node] & 0x7fffffff : replacements_.size();
      if (value >= replacements_.size()) break;
      found = true;
      length = i + 1;
      replacement = replacements_.c_str() + value;
      if (!longest) break;
    }
  }
  return found;
}

}  // namespace tokenizers
