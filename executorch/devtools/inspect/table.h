#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Tables and quantities for people.
namespace executorch::devtools {

/// Columns as wide as they need to be: the first flush left, the others right; a column whose head
/// begins with '<' is flush left too.
class Table {
 public:
  explicit Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Lines that end with '\n' and begin with `indent` spaces.
  std::string text(size_t indent = 0) const;

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<std::string>> rows_;
};

/// Three digits and a unit: "12.3 ms", "4.56 us"; "1.20 MB" (powers of 1000); "45.6 %".
std::string format_seconds(double seconds);
std::string format_bytes(double bytes);
std::string format_percent(double share);
/// Three digits, "0.00123"; "-" for 0.
std::string format_number(double value);
/// At most `width` characters, with ".." where something was left out.
std::string shorten(const std::string& text, size_t width);
/// The text as valid UTF-8 that does nothing to a terminal: control characters, except line ends
/// and tabs if `keeps_space`, and wrong bytes become their codes, as in "\x1b".
std::string printable(std::string_view text, bool keeps_space);

}  // namespace executorch::devtools
