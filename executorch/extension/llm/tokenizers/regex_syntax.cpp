#include <executorch/extension/llm/tokenizers/regex_syntax.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace tokenizers::regex {
namespace {

constexpr uint32_t kMaxRepeat = 1000;
constexpr int kMaxDepth = 60;

class Parser {
 public:
  Parser(std::string_view pattern, Dialect dialect, Program& program)
      : text_(pattern),
        dialect_(dialect),
        ruby_(dialect == Dialect::kOniguruma),
        program_(program) {}

  bool parse(Node& root) {
    return alternatives(root, 0) && (at_ == text_.size() || fail("a ) without ("));
  }
  std::string message;

 private:
  bool fail(const char* what) {
    if (message.empty()) message = std::string(what) + " at byte " + std::to_string(at_);
    return false;
  }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  uint32_t next() {
    const utf8::Character c = utf8::decode(text_.data() + at_, text_.data() + text_.size());
    at_ += c.length;
    return c.code_point;
  }
  uint32_t add(CharacterSet set) {
    if (any_case_) set.ignore_case();
    set.finish();
    program_.sets.push_back(std::move(set));
    return static_cast<uint32_t>(program_.sets.size() - 1);
  }

  bool alternatives(Node& node, int depth) {
    if (depth > kMaxDepth) return fail("groups are nested too deeply");
    node.kind = Node::Kind::kAny;
    const bool outer_case = any_case_;
    do {
      node.children.emplace_back();
      if (!sequence(node.children.back(), depth)) return false;
    } while (take("|"));
    any_case_ = outer_case;
    return true;
  }

  bool sequence(Node& node, int depth) {
    node.kind = Node::Kind::kAll;
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      if (take("(?i)")) {
        any_case_ = true;
        continue;
      }
      Node item;
      if (!atom(item, depth) || !quantifiers(item)) return false;
      node.children.push_back(std::move(item));
    }
    return true;
  }

  bool quantifiers(Node& item) {
    while (more()) {
      uint32_t least = 0;
      uint32_t most = kUnbounded;
      const size_t start = at_;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!counts(least, most)) {
        return message.empty();
      }
      Node repeat;
      repeat.kind = Node::Kind::kRepeat;
      repeat.least = least;
      repeat.most = most;
      // In Ruby's syntax + behind an interval repeats it, and ? behind {n} makes it optional.
      const std::string_view taken = text_.substr(start, at_ - start);
      const bool interval = ruby_ && taken[0] == '{';
      const bool fixed = interval && taken.find(',') == std::string_view::npos;
      repeat.lazy = !fixed && take("?");
      const bool possessive = !repeat.lazy && !interval && take("+");
      repeat.children.push_back(std::move(item));
      item = std::move(repeat);
      if (possessive) {
        Node atomic;
        atomic.kind = Node::Kind::kAtomic;
        atomic.children.push_back(std::move(item));
        item = std::move(atomic);
      }
      if (++quantified_ > 200) return fail("too many quantifiers");
    }
    return true;
  }

  /// {n}, {n,}, {,m} or {n,m}; anything else is a literal brace.
  bool counts(uint32_t& least, uint32_t& most) {
    const size_t start = at_;
    if (!take("{")) return false;
    const bool has_least = number(least);
    most = least;
    bool has_most = has_least;
    if (take(",")) {
      most = kUnbounded;
      has_most = number(most) || has_least;
    }
    if (!has_most || !take("}")) {
      at_ = start;
      return false;
    }
    if (least > kMaxRepeat || (most != kUnbounded && (most > kMaxRepeat || most < least))) {
      return fail("a count that is too large, or below the one in front of it");
    }
    return true;
  }
  bool number(uint32_t& value) {
    const size_t start = at_;
    uint32_t n = 0;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') {
      n = std::min(n * 10 + static_cast<uint32_t>(text_[at_++] - '0'), kMaxRepeat + 1);
    }
    if (at_ == start) return false;
    value = n;
    return true;
  }

  bool group(Node& node, int depth) {
    const bool outer_case = any_case_;
    if (take("?:")) {
    } else if (take("?i:")) {
      any_case_ = true;
    } else if (take("?-i:")) {
      any_case_ = false;
    } else if (take("?>")) {
      node.kind = Node::Kind::kAtomic;
    } else if (take("?=") || take("?!") || take("?<=") || take("?<!")) {
      node.kind = Node::Kind::kLook;
      node.negated = text_[at_ - 1] == '!';
      node.behind = text_[at_ - 2] == '<';
    } else if (take("?<") || take("?P<")) {
      while (more() && text_[at_] != '>') ++at_;
      if (!take(">")) return fail("a group's name without an end");
    } else if (more() && text_[at_] == '?') {
      return fail("an unknown kind of group");
    }
    Node inner;
    if (!alternatives(inner, depth + 1)) return false;
    any_case_ = outer_case;
    if (!take(")")) {
      return fail("a ( without )");
    }
    if (node.kind == Node::Kind::kAll) {
      node = std::move(inner);
    } else {
      node.children.push_back(std::move(inner));
    }
    return true;
  }

  void anchor(Node& node, Op op) {
    node.kind = Node::Kind::kAnchor;
    node.anchor = op;
    if (op == Op::kWordBoundary || op == Op::kNoWordBoundary) {
      CharacterSet words;
      add_words(words, dialect_, false);
      node.set = add(std::move(words));
    }
  }

  bool atom(Node& node, int depth) {
    if (take("(")) {
      return group(node, depth);
    }
    const std::pair<const char*, Op> kAnchors[] = {{"^", ruby_ ? Op::kLineStart : Op::kTextStart},
                                                   {"$", ruby_ ? Op::kLineEnd : Op::kTextEnd},
                                                   {"\\A", Op::kTextStart},
                                                   {"\\z", Op::kTextEnd},
                                                   {"\\Z", ruby_ ? Op::kLastLineEnd : Op::kTextEnd},
                                                   {"\\b", Op::kWordBoundary},
                                                   {"\\B", Op::kNoWordBoundary}};
    for (const auto& [name, op] : kAnchors) {
      if (take(name)) {
        anchor(node, op);
        return true;
      }
    }
    CharacterSet set;
    if (take(".")) {
      set.negated = true;
      set.ranges.emplace_back('\n', '\n');
    } else if (take("[")) {
      if (!character_class(set, depth)) return false;
    } else if (take("\\")) {
      if (!escape(set, false)) return false;
    } else if (std::strchr("*+?", text_[at_]) != nullptr) {
      return fail("a quantifier with nothing in front of it");
    } else {
      const uint32_t c = next();
      set.ranges.emplace_back(c, c);
    }
    node.kind = Node::Kind::kSet;
    node.set = add(std::move(set));
    return true;
  }

  bool character_class(CharacterSet& set, int depth) {
    if (depth > kMaxDepth) return fail("classes are nested too deeply");
    const bool negated = take("^");
    using Operation = CharacterSet::Operation;
    Operation operation = Operation::kUnion;
    CharacterSet left;
    int n_operators = 0;
    const auto join = [&] {
      if (operation != Operation::kUnion) {
        CharacterSet joined;
        joined.operation = operation;
        joined.nested = {std::move(left), std::move(set)};
        set = std::move(joined);
      }
    };
    bool first = true;
    // Hyphens with which a class begins are no operators.
    while (!ruby_ && take("-")) {
      set.ranges.emplace_back('-', '-');
      first = false;
    }
    while (more() && (text_[at_] != ']' || first)) {
      const Operation next_operation = class_operator();
      first = false;
      if (next_operation != Operation::kUnion) {
        join();
        left = std::move(set);
        set = {};
        operation = next_operation;
        if (++n_operators > kMaxDepth) return fail("too many operators in a class");
      } else if (!class_item(set, depth)) {
        return false;
      }
    }
    join();
    set.negated = negated;
    return take("]") || fail("a [ without ]");
  }

  /// Reads an operator between the parts of a class; kUnion where there is none.
  CharacterSet::Operation class_operator() {
    using Operation = CharacterSet::Operation;
    if (take("&&")) return Operation::kIntersection;
    if (!ruby_ && take("--")) return Operation::kDifference;
    return !ruby_ && take("~~") ? Operation::kSymmetricDifference : Operation::kUnion;
  }

  /// One part of a class: a class inside of it, an escape, a character or a range of characters.
  bool class_item(CharacterSet& set, int depth) {
    CharacterSet item;
    uint32_t low = 0;
    bool is_posix = false;
    if (!posix_class(set, is_posix) || is_posix) return is_posix;
    if (take("[")) {
      if (!character_class(item, depth + 1)) return false;
      set.nested.push_back(std::move(item));
      return true;
    }
    if (take("\\")) {
      if (!escape(item, true)) return false;
      if (item.ranges.size() != 1 || item.negated ||
          item.ranges[0].first != item.ranges[0].second) {
        set.nested.push_back(std::move(item));
        return true;
      }
      low = item.ranges[0].first;
    } else {
      low = next();
    }
    return range(set, low);
  }

  /// Reads `[:name:]` if it is here. An unknown name is an error for Oniguruma; for Rust's engine
  /// that is a class like any other.
  bool posix_class(CharacterSet& set, bool& found) {
    const size_t start = at_;
    if (!take("[:")) return true;
    CharacterSet item;
    item.negated = take("^");
    const size_t end = text_.find(":]", at_);
    const std::string_view name = end == std::string_view::npos ? "" : text_.substr(at_, end - at_);
    found = ruby_ ? add_posix_class(name, item, any_case_) : add_ascii_class(name, item);
    at_ = found ? end + 2 : start;
    if (found) set.nested.push_back(std::move(item));
    return found || !ruby_ || fail("an unknown POSIX class");
  }

  /// The rest of a range that begins at `low`, or nothing where `low` stands alone.
  bool range(CharacterSet& set, uint32_t low) {
    uint32_t high = low;
    if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']' &&
        (ruby_ || text_[at_ + 1] != '-')) {
      ++at_;
      CharacterSet end;
      if (take("\\")) {
        if (!escape(end, true) || end.ranges.size() != 1) {
          return fail("a range that ends with a class");
        }
        high = end.ranges[0].first;
      } else {
        high = next();
      }
      if (high < low) return fail("a range that ends before it starts");
    }
    set.ranges.emplace_back(low, high);
    return true;
  }

  bool escape(CharacterSet& set, bool in_class) {
    if (!more()) {
      return fail("a \\ at the end");
    }
    const uint32_t c = next();
    if (ruby_ && (c == 'h' || c == 'H')) {
      set.negated = c == 'H';
      return add_posix_class("xdigit", set, any_case_);
    }
    if (ruby_ && (c == 'p' || c == 'P') && (!more() || text_[at_] != '{')) {
      set.ranges.emplace_back(c, c);
      return true;
    }
    constexpr char kControls[] = "n\nr\rt\tf\fv\va\ae\x1b";
    for (const char* at = kControls; *at != 0; at += 2) {
      if (c == static_cast<uint32_t>(*at)) {
        set.ranges.emplace_back(static_cast<uint32_t>(at[1]), static_cast<uint32_t>(at[1]));
        return true;
      }
    }
    switch (c) {
      case 'S':
        set.negated = true;
        [[fallthrough]];
      case 's':
        set.spaces = true;
        return true;
      case 'D':
        set.negated = true;
        [[fallthrough]];
      case 'd':
        set.categories = 1u << unicode::kDecimalDigit;
        return true;
      case 'W':
        set.negated = true;
        [[fallthrough]];
      case 'w':
        add_words(set, dialect_, in_class);
        return true;
      case 'P':
        set.negated = true;
        [[fallthrough]];
      case 'p':
        return property(set, in_class);
      case 'x':
      case 'u':
        return code_point(set, c == 'x' ? 2 : 4);
      default:
        if (c >= 128 || !std::isalnum(static_cast<int>(c))) {
          set.ranges.emplace_back(c, c);
          return true;
        }
        return fail("an unknown escape");
    }
  }

  bool property(CharacterSet& set, bool in_class) {
    std::string name;
    if (take("{")) {
      if (take("^")) set.negated = !set.negated;
      while (more() && text_[at_] != '}') name += text_[at_++];
      if (!take("}")) {
        return fail("a \\p{ without }");
      }
    } else if (more()) {
      name += text_[at_++];
    }
    return add_property(name, set, dialect_, in_class, any_case_) || fail("an unknown property");
  }

  bool code_point(CharacterSet& set, size_t digits) {
    const bool braces = take("{");
    uint32_t value = 0;
    size_t count = 0;
    while (more() && (braces || count < digits) &&
           std::isxdigit(static_cast<uint8_t>(text_[at_]))) {
      const char c = text_[at_++];
      value = value * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
      if (++count > 6) break;
    }
    if (count == 0 || value > 0x10ffff || (braces && !take("}"))) {
      return fail("a character's number that is none");
    }
    set.ranges.emplace_back(value, value);
    return true;
  }

  std::string_view text_;
  Dialect dialect_;
  bool ruby_;
  Program& program_;
  size_t at_ = 0;
  size_t quantified_ = 0;
  bool any_case_ = false;
};

}  // namespace

bool parse(std::string_view pattern, Dialect dialect, Program& program, Node& root,
           std::string& message) {
  Parser parser(pattern, dialect, program);
  if (!parser.parse(root)) {
    message = parser.message;
    return false;
  }
  return true;
}

}  // namespace tokenizers::regex
