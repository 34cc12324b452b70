#pragma once

#include <executorch/extension/llm/tokenizers/unicode_regex.h>

namespace tokenizers {

/// The names of engines that users' sources may ask for. One engine stands behind all: it knows
/// what tokenizers' patterns use of each, and bounds its steps.
class StdRegex : public UnicodeRegex {
 public:
  explicit StdRegex() = default;
};
class Re2Regex : public UnicodeRegex {
 public:
  explicit Re2Regex() = default;
};
class Pcre2Regex : public UnicodeRegex {
 public:
  explicit Pcre2Regex() = default;
};

}  // namespace tokenizers
