#pragma once

#include <executorch/extension/llm/tokenizers/result.h>

#include <memory>
#include <string>
#include <vector>

namespace tokenizers {

/// A match's bytes: [start, end).
struct Match {
  size_t start;
  size_t end;
};

class IRegex {
 public:
  virtual ~IRegex() = default;

  virtual Error compile(const std::string& pattern) = 0;
  /// The matches from left to right, which do not overlap; an empty one is followed by the next
  /// character. Where a match would take too many steps, those in front of it.
  virtual std::vector<Match> find_all(const std::string& text) const = 0;

  /// `input` as a pattern that matches just that text.
  static std::string escape(const std::string& input);
};

/// Makes a regular expression; see unicode_regex.h for what it may contain.
Result<std::unique_ptr<IRegex>> create_regex(const std::string& pattern);

using FallbackRegexFn = Result<std::unique_ptr<IRegex>> (*)(const std::string&);
/// `fn` is asked for patterns that the engine here does not know.
bool register_override_fallback_regex(FallbackRegexFn fn);
FallbackRegexFn get_fallback_regex();

}  // namespace tokenizers
