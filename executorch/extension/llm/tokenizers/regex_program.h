#pragma once

#include <executorch/extension/llm/tokenizers/regex_character_set.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers::regex {

enum class Op : uint8_t {
  /// Reads one character of set a.
  kSet,
  /// Continues at a; if that fails, at b.
  kSplit,
  kJump,
  /// Reads as many characters of set a as possible, at least b and at most c.
  kGreedySet,
  /// Matches the program from pc + 1 to its kMatch without backtracking into it later, then
  /// continues at a.
  kAtomic,
  /// Like kAtomic, but without moving the position. b: 1 for a negative look-around. c: for a
  /// look-behind, how many characters before the position the match begins, to end at the position;
  /// -1 for a look-ahead.
  kLook,
  /// kRemember stores the position in register a; kProgress continues at b if the position is still
  /// the one in register a.
  kRemember,
  kProgress,
  kTextStart,
  kTextEnd,
  /// At the end of the text, or before a line break that ends it.
  kLastLineEnd,
  kLineStart,
  kLineEnd,
  /// Between a character of set a and another character or an end of the text.
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
