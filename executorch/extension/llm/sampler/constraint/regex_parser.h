#pragma once

#include <executorch/extension/llm/sampler/constraint/regex.h>

namespace executorch::extension::llm::constraint {

/// Reads an expression once, from left to right. Throws Unusable, with the place.
class RegexParser {
 public:
  explicit RegexParser(const std::string& pattern);
  Regex::Node parse();

 private:
  using Node = Regex::Node;
  static constexpr size_t kMaxDepth = 100;

  bool at_end() const { return at_ == pattern_.size(); }
  bool next_is(char32_t c) const { return !at_end() && pattern_[at_] == c; }
  bool take(char32_t c);
  uint32_t take_any(const char* expected);
  [[noreturn]] void fail(const std::string& what) const;

  Node alternation();
  Node sequence();
  Node repeated();
  Node atom();
  Node group();
  CodePointSet bracket();
  CodePointSet bracket_item(bool& is_character);
  /// What follows a backslash.
  CodePointSet escape(bool in_bracket, bool& is_character);
  uint32_t hex(size_t n_digits);
  bool take_counts(Node& repeat);
  bool take_number(uint32_t& number);

  std::vector<uint32_t> pattern_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

}  // namespace executorch::extension::llm::constraint
