/// Sets of characters, and how each is written: as UTF-8, or within a JSON string.
#pragma once

#include <executorch/extension/llm/sampler/constraint/nfa.h>

#include <functional>

namespace executorch::extension::llm::constraint {

/// Code points but surrogates.
class CodePointSet {
 public:
  static constexpr uint32_t kMax = 0x10ffff;
  struct Range {
    uint32_t first, last;
  };

  CodePointSet() = default;
  CodePointSet(std::initializer_list<Range> ranges);
  static CodePointSet all() { return CodePointSet().complement(); }

  void add(uint32_t first, uint32_t last);
  void add(const CodePointSet& other);
  CodePointSet complement() const;
  CodePointSet without(const CodePointSet& other) const;
  bool contains(uint32_t code_point) const;
  /// Sorted, disjoint and not adjacent.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

/// Decodes UTF-8. Throws Unusable for other bytes.
std::vector<uint32_t> decode_utf8(const std::string& text);

/// A numeral system for add_digits(), which adds all numbers from `first` to `last`, given by
/// equally many digits. Digits go from `least` to `most`; bytes_of(a, b) are the bytes that stand
/// for digits a to b.
struct Digits {
  int least, most;
  std::function<ByteSet(int first, int last)> bytes_of;
};
void add_digits(NfaBuilder& builder, State from, State to, const Digits& digits,
                const std::vector<int>& first, const std::vector<int>& last);
extern const Digits kDecimal;

/// Adds an edge that reads one character of `set`.
using AddCharacter = void (*)(NfaBuilder& builder, State from, State to, const CodePointSet& set);
void add_utf8(NfaBuilder& builder, State from, State to, const CodePointSet& set);
/// Like add_utf8(), with all escapes that JSON has for a character.
void add_json_character(NfaBuilder& builder, State from, State to, const CodePointSet& set);

}  // namespace executorch::extension::llm::constraint
