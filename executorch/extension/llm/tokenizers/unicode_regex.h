#pragma once

#include <executorch/extension/llm/tokenizers/regex.h>
#include <executorch/extension/llm/tokenizers/regex_program.h>

#include <string>
#include <string_view>
#include <vector>

namespace tokenizers {

/// Regular expressions over characters, as tokenizers use them: alternatives, groups `(?:)` `(?i:)`
/// `(?>)`, look-around `(?=)` `(?!)` `(?<=)` `(?<!)` (behind: of one width), classes with ranges,
/// nested, negated and intersected by `&&`, `[[:alpha:]]` and its like, `\p{..}` of general
/// categories and Han, `\s \d \w` and their opposites, anchors, greedy, lazy and possessive
/// quantifiers. No backreferences. Where engines differ, the dialect says what is meant;
/// Oniguruma's has `\p{Alpha}` and its like, and `\h`.
/// Matching goes back where it must, with a bound on its steps: at most kStepsPerByte for each byte
/// of the text, so a hostile pattern fails instead of taking for ever.
class UnicodeRegex : public IRegex {
 public:
  Error compile(const std::string& pattern) override {
    return compile(pattern, regex::Dialect::kRust);
  }
  Error compile(const std::string& pattern, regex::Dialect dialect);
  std::vector<Match> find_all(const std::string& text) const override;

  /// Appends the matches; false where the bound on steps was reached, which is logged.
  bool find_all(std::string_view text, std::vector<Match>& matches) const;
  /// Why compile() failed.
  const std::string& message() const { return message_; }
  /// Which pattern reached the bound on steps last in this thread, and where in its text; empty
  /// where none did after the last call.
  static std::string take_failure();

 private:
  regex::Program program_;
  std::string pattern_;
  std::string message_;
};

}  // namespace tokenizers
