#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenizers::regex {

/// What a pattern means where engines differ. Vocabularies of tiktoken come with patterns for
/// Rust's engine, a tokenizer.json with patterns for Oniguruma, which reads Ruby's syntax.
enum class Dialect {
  /// `^` and `$` are the ends of the text, `{n,m}+` gives nothing back.
  kRust,
  /// `^` and `$` are the ends of lines, `{n,m}+` repeats the interval, `[[:alpha:]]` is a class.
  kOniguruma,
};

/// A set of characters: categories, flags (see unicode.h) and ranges, possibly all others instead.
struct CharacterSet {
  uint32_t categories = 0;
  uint32_t flags = 0;
  bool spaces = false;
  bool negated = false;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  /// Sets inside this one.
  std::vector<CharacterSet> nested;
  bool ascii[128] = {};

  /// Computes `ascii` once all else is set.
  void finish();
  bool has(uint32_t c) const { return c < 128 ? ascii[c] : compute(c); }
  bool compute(uint32_t c) const;
};

enum class Op : uint8_t {
  /// One character of set a.
  kSet,
  /// Goes on at a; if that fails, at b.
  kSplit,
  kJump,
  /// Characters of set a as often as possible, at least b, at most c.
  kGreedySet,
  /// The program from pc + 1 to its kMatch matches here, without going back into it; then on at a.
  kAtomic,
  /// The same without moving. b: 1 where it must not match. c: characters that it begins before
  /// here and has to end at, or -1 to look ahead.
  kLook,
  /// Register a remembers the position; and, at kProgress, leads to b if it has not changed.
  kRemember,
  kProgress,
  kTextStart,
  kTextEnd,
  /// Before a line break that ends the text, too.
  kLastLineEnd,
  kLineStart,
  kLineEnd,
  /// Between a character of set a and one that is none, or an end of the text.
  kWordBoundary,
  kNoWordBoundary,
  kMatch,
};

struct Instruction {
  Op op;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
};

struct Program {
  std::vector<Instruction> code;
  std::vector<CharacterSet> sets;
  uint32_t registers = 0;
};

/// False where the pattern is not understood; `message` then says where and why.
bool compile(std::string_view pattern, Dialect dialect, Program& program, std::string& message);

}  // namespace tokenizers::regex
