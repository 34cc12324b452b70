#include <executorch/extension/llm/sampler/constraint/regex_parser.h>

#include <algorithm>

namespace executorch::extension::llm::constraint {
namespace {

const CodePointSet kDigit{{'0', '9'}};
const CodePointSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePointSet kSpace{{'\t', '\r'}, {' ', ' '}};
// What \S must not be: spaces of Unicode, too, so that every dialect agrees.
const CodePointSet kAnySpace{{'\t', '\r'},     {0x1c, ' '},      {0x85, 0x85},     {0xa0, 0xa0},
                             {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                             {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};

CodePointSet one(uint32_t c) {
  return CodePointSet{{c, c}};
}

bool is_letter_or_digit(uint32_t c) {
  return c < 0x80 && kWord.contains(c) && c != '_';
}

}  // namespace

RegexParser::RegexParser(const std::string& pattern) {
  if (pattern.size() > 1 << 16) throw Unusable("an expression of more than 65536 bytes");
  pattern_ = decode_utf8(pattern);
}

Regex::Node RegexParser::parse() {
  Node node = alternation();
  if (!at_end()) fail("unmatched )");
  return node;
}

void RegexParser::fail(const std::string& what) const {
  throw Unusable(what + ", at character " + std::to_string(at_) + " of the expression");
}

bool RegexParser::take(char32_t c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

uint32_t RegexParser::take_any(const char* expected) {
  if (at_end()) fail(std::string("the expression ends where ") + expected + " is expected");
  return pattern_[at_++];
}

Regex::Node RegexParser::alternation() {
  if (++depth_ > kMaxDepth) fail("groups nested more than " + std::to_string(kMaxDepth) + " deep");
  Node first = sequence();
  if (!next_is('|')) return --depth_, first;
  Node node{Regex::Kind::Alternation, {}, {}, 0, 0};
  node.children.push_back(std::move(first));
  while (take('|')) node.children.push_back(sequence());
  --depth_;
  return node;
}

Regex::Node RegexParser::sequence() {
  Node node{Regex::Kind::Sequence, {}, {}, 0, 0};
  while (!at_end() && !next_is('|') && !next_is(')')) node.children.push_back(repeated());
  return node;
}

Regex::Node RegexParser::repeated() {
  Node node = atom();
  while (true) {
    Node repeat{Regex::Kind::Repeat, {}, {}, 0, Node::kUnbounded};
    if (take('+')) {
      repeat.min = 1;
    } else if (take('?')) {
      repeat.max = 1;
    } else if (!take('*') && !take_counts(repeat)) {
      return node;
    }
    if (node.kind == Regex::Kind::Start || node.kind == Regex::Kind::End) fail("nothing to repeat");
    if (node.kind == Regex::Kind::Repeat) fail("a repetition of a repetition");
    if (next_is('+')) fail("possessive quantifiers are not supported");
    take('?');  // lazy: the same texts
    repeat.children.push_back(std::move(node));
    node = std::move(repeat);
  }
}

bool RegexParser::take_number(uint32_t& number) {
  uint64_t value = 0;
  const size_t begin = at_;
  for (; !at_end() && kDigit.contains(pattern_[at_]); ++at_) {
    value = std::min<uint64_t>(value * 10 + (pattern_[at_] - '0'), Node::kUnbounded - 1);
  }
  number = static_cast<uint32_t>(value);
  return at_ != begin;
}

/// {m}, {m,}, {m,n} or {,n}; other braces are literal.
bool RegexParser::take_counts(Node& repeat) {
  const size_t begin = at_;
  if (!take('{')) return false;
  const bool has_min = take_number(repeat.min);
  bool has_max = false;
  const bool has_comma = take(',');
  if (has_comma) has_max = take_number(repeat.max);
  if (!take('}') || !(has_min || has_max)) {
    at_ = begin;
    return false;
  }
  if (!has_comma) repeat.max = repeat.min;
  if (!has_min) repeat.min = 0;
  if (has_comma && !has_max) repeat.max = Node::kUnbounded;
  if (repeat.min > repeat.max) fail("a repetition whose minimum is more than its maximum");
  return true;
}

Regex::Node RegexParser::atom() {
  Node node{Regex::Kind::Set, {}, {}, 0, 0};
  const uint32_t c = take_any("a character");
  bool is_character;
  switch (c) {
    case '(':
      return group();
    case '^':
      node.kind = Regex::Kind::Start;
      return node;
    case '$':
      node.kind = Regex::Kind::End;
      return node;
    case '.':
      node.set = one('\n').complement();
      return node;
    case '[':
      node.set = bracket();
      return node;
    case '\\':
      node.set = escape(false, is_character);
      return node;
    case '*':
    case '+':
    case '?':
      fail("nothing to repeat");
    default:
      node.set = one(c);
      return node;
  }
}

Regex::Node RegexParser::group() {
  if (take('?')) {
    if (take('P') || next_is('<')) {
      if (!take('<') || next_is('=') || next_is('!')) fail("unsupported kind of group");
      while (take_any("the end of a group's name") != '>') {
      }
    } else if (!take(':')) {
      fail("unsupported kind of group");
    }
  }
  Node node = alternation();
  if (!take(')')) fail("a group without )");
  return node;
}

CodePointSet RegexParser::bracket() {
  const bool negated = take('^');
  CodePointSet set;
  bool first = true;
  while (first || !next_is(']')) {
    if (at_end()) fail("a class without ]");
    first = false;
    bool is_character;
    const CodePointSet item = bracket_item(is_character);
    const bool range = next_is('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (!is_character || !range) {
      set.add(item);
      continue;
    }
    ++at_;
    const CodePointSet last = bracket_item(is_character);
    if (!is_character) fail("a range that ends in a class");
    const uint32_t from = item.ranges()[0].first, to = last.ranges()[0].first;
    if (from > to) fail("a range that ends before it begins");
    set.add(from, to);
  }
  ++at_;
  return negated ? set.complement() : set;
}

CodePointSet RegexParser::bracket_item(bool& is_character) {
  const uint32_t c = take_any("]");
  if (c == '\\') return escape(true, is_character);
  if (c == '[' && (next_is(':') || next_is('.') || next_is('='))) fail("unsupported kind of class");
  is_character = true;
  return one(c);
}

uint32_t RegexParser::hex(size_t n_digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < n_digits; ++i) {
    const uint32_t c = take_any("a hexadecimal digit");
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !((c | 32) >= 'a' && (c | 32) <= 'f')) fail("not a hexadecimal digit");
    value = value << 4 | (digit ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}

CodePointSet RegexParser::escape(bool in_bracket, bool& is_character) {
  is_character = false;
  const uint32_t c = take_any("what follows a backslash");
  switch (c) {
    case 'd':
      return kDigit;
    case 'D':
      return kDigit.complement();
    case 'w':
      return kWord;
    case 'W':
      return kWord.complement();
    case 's':
      return kSpace;
    case 'S':
      return kAnySpace.complement();
    default:
      break;
  }
  is_character = true;
  constexpr char kLetters[] = "tnrfv0", kMeanings[] = "\t\n\r\f\v";
  for (size_t i = 0; kLetters[i] != 0; ++i) {
    if (c == static_cast<uint32_t>(kLetters[i])) return one(static_cast<uint32_t>(kMeanings[i]));
  }
  if (in_bracket && c == 'b') return one('\b');
  if (c == 'x' || c == 'u') {
    uint32_t value = 0;
    if (c == 'u' && take('{')) {
      while (!take('}')) {
        if (value > CodePointSet::kMax) fail("not a character");
        value = value << 4 | hex(1);
      }
    } else {
      value = hex(c == 'x' ? 2 : 4);
    }
    if (value > CodePointSet::kMax || (value >= 0xd800 && value <= 0xdfff)) fail("not a character");
    return one(value);
  }
  if (is_letter_or_digit(c)) {
    fail("\\" + std::string(1, static_cast<char>(c)) + " is not supported");
  }
  return one(c);
}

}  // namespace executorch::extension::llm::constraint
