/// The syntax tree of a regular expression, between its text and its code.
#pragma once

#include <executorch/extension/llm/tokenizers/regex_program.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizers::regex {

/// `most` of a repetition without an upper bound.
constexpr uint32_t kUnbounded = 0xffffffff;

struct Node {
  enum class Kind { kSet, kAll, kAny, kRepeat, kLook, kAtomic, kAnchor } kind = Kind::kAll;
  std::vector<Node> children;
  uint32_t set = 0;
  uint32_t least = 0;
  uint32_t most = 0;
  bool lazy = false;
  bool behind = false;
  bool negated = false;
  Op anchor = Op::kMatch;
};

/// Reads `pattern`, which is UTF-8, into `root`, and its sets of characters into `program`. False,
/// with `message` saying what is wrong at which byte, for a pattern that is not understood.
bool parse(std::string_view pattern, Dialect dialect, Program& program, Node& root,
           std::string& message);

}  // namespace tokenizers::regex
