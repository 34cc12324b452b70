/// Sets of characters in regular expressions, and those of them that have names.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenizers::regex {

/// What a pattern means where engines differ. Vocabularies of tiktoken come with patterns for
/// Rust's engine, a tokenizer.json with patterns for Oniguruma, which reads Ruby's syntax.
enum class Dialect {
  /// `^` and `$` are the ends of the text, `{n,m}+` gives nothing back, `[[:alpha:]]` is of ASCII,
  /// `--` and `~~` in classes are operators, as `&&` is.
  kRust,
  /// `^` and `$` are the ends of lines, `{n,m}+` repeats the interval, `[[:alpha:]]` is of Unicode.
  kOniguruma,
};

/// A set of characters: categories, flags (see unicode.h) and ranges, possibly all others instead.
struct CharacterSet {
  uint32_t categories = 0;
  uint32_t flags = 0;
  bool spaces = false;
  bool negated = false;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  /// What `nested` adds: all of its sets; or, to a set that has nothing else, what both of two sets
  /// have, what only the first has, or what one of them has and the other has not.
  enum class Operation : uint8_t { kUnion, kIntersection, kDifference, kSymmetricDifference };
  Operation operation = Operation::kUnion;
  std::vector<CharacterSet> nested;
  bool ascii[128] = {};

  /// Adds the other cases of the characters that `ranges` names here and in nested sets.
  void ignore_case();
  /// Computes `ascii` once all else is set.
  void finish();
  bool has(uint32_t c) const { return c < 128 ? ascii[c] : compute(c); }
  bool compute(uint32_t c) const;
};

/// `\w`, which has more characters outside of classes than in them for Oniguruma.
void add_words(CharacterSet& set, Dialect dialect, bool in_class);

/// The characters of a POSIX class, as Oniguruma understands it. False for an unknown name.
bool add_posix_class(std::string_view name, CharacterSet& set, bool any_case);

/// The characters of a POSIX class, as Rust's engine understands it: of ASCII. False for an unknown
/// name.
bool add_ascii_class(std::string_view name, CharacterSet& set);

/// The characters of `\p{name}`: a category, a script or, for Oniguruma, a POSIX class. False for
/// an unknown name.
bool add_property(std::string_view name, CharacterSet& set, Dialect dialect, bool in_class,
                  bool any_case);

}  // namespace tokenizers::regex
