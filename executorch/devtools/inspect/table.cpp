#include <executorch/devtools/inspect/table.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

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

std::string with_unit(double value, const char* const* units, size_t n_units) {
  size_t unit = 0;
  while (std::fabs(value) >= 999.5 && unit + 1 < n_units) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const double size = std::fabs(value);
  const bool is_whole = std::fabs(value - std::round(value)) <= 1e-9 * size;
  const int decimals = is_whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof(text), "%.*f %s", decimals, value, units[unit]);
  return text;
}

std::string padded(const std::string& text, size_t width, bool left) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return left ? text + space : space + text;
}

}  // namespace

std::string Table::text(size_t indent) const {
  std::vector<std::string> heads = heads_;
  std::vector<bool> left(heads.size());
  std::vector<size_t> widths(heads.size());
  for (size_t c = 0; c < heads.size(); ++c) {
    left[c] = c == 0 || (!heads[c].empty() && heads[c][0] == '<');
    if (!heads[c].empty() && heads[c][0] == '<') heads[c].erase(0, 1);
    widths[c] = heads[c].size();
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out(indent, ' ');
    for (size_t c = 0; c < cells.size(); ++c) {
      out += (c == 0 ? "" : "  ") + padded(cells[c], widths[c], left[c]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  std::string out = line(heads);
  for (const auto& row : rows_) out += line(row);
  return out;
}

std::string format_seconds(double seconds) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  return with_unit(seconds * 1e9, kUnits, std::size(kUnits));
}

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  return with_unit(bytes, kUnits, std::size(kUnits));
}

std::string format_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return text;
}

std::string format_number(double value) {
  if (value == 0) return "-";
  char text[32];
  const int digits = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  std::snprintf(text, sizeof(text), "%.*f", std::clamp(2 - digits, 0, 9), value);
  return text;
}

std::string shorten(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  const size_t head = (width - 2) / 2;
  return text.substr(0, head) + ".." + text.substr(text.size() - (width - 2 - head));
}

std::string printable(std::string_view text, bool keeps_space) {
  std::string out;
  while (!text.empty()) {
    const size_t n = character_bytes(text);
    const char c = text[0];
    const bool is_space = keeps_space && (c == '\n' || c == '\t');
    const bool is_control = n == 1 && (static_cast<uint8_t>(c) < ' ' || c == '\x7f') && !is_space;
    if (n == 0 || is_control) {
      char code[5];
      std::snprintf(code, sizeof(code), "\\x%02x", static_cast<uint8_t>(c));
      out += code;
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

}  // namespace executorch::devtools
