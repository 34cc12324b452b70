/// Regular expressions, which match a whole text or a part of it.
#pragma once

#include <executorch/extension/llm/sampler/constraint/code_points.h>

namespace executorch::extension::llm::constraint {

/// Literals, `.`, classes, \d \w \s \D \W \S, \t \n \r \f \v \0 \xHH \uHHHH \u{H..}, groups with
/// and without names, |, * + ? {m} {m,} {m,n} {,n}, ^ and $ at the ends. Classes are ASCII, as in
/// ECMA-262 without its flags; `.` is any character but \n. Lazy quantifiers take what greedy ones
/// do. Throws Unusable for others (look-around, back references, \b, flags), and what is not UTF-8.
class Regex {
 public:
  enum class Kind { Set, Empty, Sequence, Alternation, Repeat, Start, End };
  struct Node {
    Kind kind = Kind::Empty;
    CodePointSet set;            // of a Set
    std::vector<Node> children;  // the one of a Repeat
    uint32_t min = 0, max = 0;   // of a Repeat
    static constexpr uint32_t kUnbounded = UINT32_MAX;
  };

  explicit Regex(const std::string& pattern);

  /// Adds the texts that the expression matches as a whole.
  void add_whole(NfaBuilder& builder, State from, State to, AddCharacter add_character) const;
  /// Adds the texts of which some part matches.
  void add_anywhere(NfaBuilder& builder, State from, State to, AddCharacter add_character) const;

 private:
  Node root_;
};

}  // namespace executorch::extension::llm::constraint
