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
  /// Sorted; none touches the next.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

/// The code points of UTF-8. Throws Unusable for what is not UTF-8.
std::vector<uint32_t> decode_utf8(const std::string& text);

/// Numbers of equally many digits, `first` to `last`. A digit is `least` to `most`, and read as one
/// of the bytes of `bytes_of` it and the digits up to another.
struct Digits {
  int least, most;
  std::function<ByteSet(int first, int last)> bytes_of;
};
void add_digits(NfaBuilder& builder, State from, State to, const Digits& digits,
                const std::vector<int>& first, const std::vector<int>& last);
extern const Digits kDecimal;

/// Adds a character of `set`.
using AddCharacter = void (*)(NfaBuilder& builder, State from, State to, const CodePointSet& set);
void add_utf8(NfaBuilder& builder, State from, State to, const CodePointSet& set);
/// With all ways in which JSON may escape it.
void add_json_character(NfaBuilder& builder, State from, State to, const CodePointSet& set);

}  // namespace executorch::extension::llm::constraint
