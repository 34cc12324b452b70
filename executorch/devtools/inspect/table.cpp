#include <executorch/devtools/inspect/table.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace executorch::devtools {
namespace {

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

}  // namespace executorch::devtools
