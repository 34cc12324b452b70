#include <executorch/extension/llm/tokenizers/regex_program.h>
#include <executorch/extension/llm/tokenizers/unicode.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace tokenizers::regex {

namespace {

constexpr uint32_t kUnbounded = 0xffffffff;
constexpr uint32_t kMaxRepeat = 1000;
constexpr size_t kMaxCode = 50000;
constexpr int kMaxDepth = 60;

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

/// The first two letters of categories, in the order of unicode::Category.
constexpr const char kCategories[] = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo";

class Parser {
 public:
  Parser(std::string_view pattern, Program& program) : text_(pattern), program_(program) {}

  bool parse(Node& root) {
    return alternatives(root, 0) && (at_ == text_.size() || fail("a ) without ("));
  }
  std::string message;

 private:
  bool fail(const char* what) {
    if (message.empty()) {
      message = std::string(what) + " at byte " + std::to_string(at_);
    }
    return false;
  }
  bool more() const { return at_ < text_.size(); }
  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) {
      return false;
    }
    at_ += what.size();
    return true;
  }
  uint32_t next() {
    const utf8::Character c = utf8::decode(text_.data() + at_, text_.data() + text_.size());
    at_ += c.length;
    return c.code_point;
  }
  uint32_t add(CharacterSet set) {
    if (any_case_) {
      ignore_case(set);
    }
    set.finish();
    program_.sets.push_back(std::move(set));
    return static_cast<uint32_t>(program_.sets.size() - 1);
  }
  static void ignore_case(CharacterSet& set) {
    const auto ranges = set.ranges;
    for (const auto& [low, high] : ranges) {
      for (uint32_t c = low; c <= high && c - low < 512; ++c) {
        for (const uint32_t same : unicode::same_but_for_case(c)) {
          set.ranges.emplace_back(same, same);
        }
      }
    }
    for (CharacterSet& inner : set.nested) {
      ignore_case(inner);
    }
  }

  bool alternatives(Node& node, int depth) {
    if (depth > kMaxDepth) {
      return fail("groups are nested too deeply");
    }
    node.kind = Node::Kind::kAny;
    const bool outer_case = any_case_;
    do {
      node.children.emplace_back();
      if (!sequence(node.children.back(), depth)) {
        return false;
      }
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
      if (!atom(item, depth) || !quantifiers(item)) {
        return false;
      }
      node.children.push_back(std::move(item));
    }
    return true;
  }

  bool quantifiers(Node& item) {
    while (more()) {
      uint32_t least = 0;
      uint32_t most = kUnbounded;
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
      repeat.lazy = take("?");
      const bool possessive = !repeat.lazy && take("+");
      repeat.children.push_back(std::move(item));
      item = std::move(repeat);
      if (possessive) {
        Node atomic;
        atomic.kind = Node::Kind::kAtomic;
        atomic.children.push_back(std::move(item));
        item = std::move(atomic);
      }
      if (++quantified_ > 200) {
        return fail("too many quantifiers");
      }
    }
    return true;
  }

  /// {n}, {n,}, {,m} or {n,m}; anything else is a literal brace.
  bool counts(uint32_t& least, uint32_t& most) {
    const size_t start = at_;
    if (!take("{")) {
      return false;
    }
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
    if (at_ == start) {
      return false;
    }
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
      while (more() && text_[at_] != '>') {
        ++at_;
      }
      if (!take(">")) {
        return fail("a group's name without an end");
      }
    } else if (more() && text_[at_] == '?') {
      return fail("an unknown kind of group");
    }
    Node inner;
    if (!alternatives(inner, depth + 1)) {
      return false;
    }
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
  }

  bool atom(Node& node, int depth) {
    if (take("(")) {
      return group(node, depth);
    }
    if (take("^")) {
      anchor(node, Op::kLineStart);
      return true;
    }
    if (take("$")) {
      anchor(node, Op::kLineEnd);
      return true;
    }
    constexpr std::pair<const char*, Op> kAnchors[] = {{"\\A", Op::kTextStart},
                                                       {"\\z", Op::kTextEnd},
                                                       {"\\Z", Op::kLineEnd},
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
      if (!character_class(set, depth)) {
        return false;
      }
    } else if (take("\\")) {
      if (!escape(set)) {
        return false;
      }
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
    if (depth > kMaxDepth) {
      return fail("classes are nested too deeply");
    }
    set.negated = take("^");
    bool first = true;
    while (more() && (text_[at_] != ']' || first)) {
      first = false;
      if (take("&&")) {
        return fail("an intersection of classes, which is not supported,");
      }
      CharacterSet item;
      if (take("[")) {
        if (!character_class(item, depth + 1)) {
          return false;
        }
        set.nested.push_back(std::move(item));
        continue;
      }
      uint32_t low = 0;
      if (take("\\")) {
        if (!escape(item)) {
          return false;
        }
        if (item.ranges.size() != 1 || item.negated ||
            item.ranges[0].first != item.ranges[0].second) {
          set.nested.push_back(std::move(item));
          continue;
        }
        low = item.ranges[0].first;
      } else {
        low = next();
      }
      uint32_t high = low;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        CharacterSet end;
        if (take("\\")) {
          if (!escape(end) || end.ranges.size() != 1) {
            return fail("a range that ends with a class");
          }
          high = end.ranges[0].first;
        } else {
          high = next();
        }
        if (high < low) {
          return fail("a range that ends before it starts");
        }
      }
      set.ranges.emplace_back(low, high);
    }
    return take("]") || fail("a [ without ]");
  }

  bool escape(CharacterSet& set) {
    if (!more()) {
      return fail("a \\ at the end");
    }
    const uint32_t c = next();
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
        set.flags = unicode::kWord;
        return true;
      case 'P':
        set.negated = true;
        [[fallthrough]];
      case 'p':
        return property(set);
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

  bool property(CharacterSet& set) {
    std::string name;
    if (take("{")) {
      if (take("^")) {
        set.negated = !set.negated;
      }
      while (more() && text_[at_] != '}') {
        name += text_[at_++];
      }
      if (!take("}")) {
        return fail("a \\p{ without }");
      }
    } else if (more()) {
      name += text_[at_++];
    }
    constexpr std::pair<const char*, const char*> kLongNames[] = {{"Letter", "L"},
                                                                  {"Number", "N"},
                                                                  {"Punctuation", "P"},
                                                                  {"Symbol", "S"},
                                                                  {"Mark", "M"},
                                                                  {"Separator", "Z"},
                                                                  {"Other", "C"},
                                                                  {"Alphabetic", "L"},
                                                                  {"Uppercase_Letter", "Lu"},
                                                                  {"Lowercase_Letter", "Ll"},
                                                                  {"Script=Han", "Han"},
                                                                  {"sc=Han", "Han"}};
    for (const auto& [longer, shorter] : kLongNames) {
      name = name == longer ? shorter : name;
    }
    if (name == "Han") {
      set.flags = unicode::kHan;
      return true;
    }
    for (uint32_t i = 0; i < unicode::kCategories; ++i) {
      const std::string_view category(kCategories + 2 * i, 2);
      if (!name.empty() && category.substr(0, name.size()) == name) {
        set.categories |= 1u << i;
      }
    }
    return set.categories != 0 || fail("an unknown property");
  }

  bool code_point(CharacterSet& set, size_t digits) {
    const bool braces = take("{");
    uint32_t value = 0;
    size_t count = 0;
    while (more() && (braces || count < digits) &&
           std::isxdigit(static_cast<uint8_t>(text_[at_]))) {
      const char c = text_[at_++];
      value = value * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
      if (++count > 6) {
        break;
      }
    }
    if (count == 0 || value > 0x10ffff || (braces && !take("}"))) {
      return fail("a character's number that is none");
    }
    set.ranges.emplace_back(value, value);
    return true;
  }

  std::string_view text_;
  Program& program_;
  size_t at_ = 0;
  size_t quantified_ = 0;
  bool any_case_ = false;
};

class Compiler {
 public:
  Compiler(Program& program, std::string& message) : program_(program), message_(message) {}

  bool emit(const Node& node) {
    if (program_.code.size() > kMaxCode) {
      message_ = "the pattern is too large";
      return false;
    }
    switch (node.kind) {
      case Node::Kind::kSet:
        add({Op::kSet, node.set});
        return true;
      case Node::Kind::kAnchor:
        add({node.anchor});
        return true;
      case Node::Kind::kAll:
        return std::all_of(node.children.begin(), node.children.end(),
                           [&](const Node& child) { return emit(child); });
      case Node::Kind::kAny:
        return any(node);
      case Node::Kind::kRepeat:
        return repeat(node);
      case Node::Kind::kAtomic: {
        const size_t start = add({Op::kAtomic});
        return emit(node.children[0]) && close(start);
      }
      case Node::Kind::kLook: {
        int64_t width = -1;
        if (node.behind && (width = width_of(node.children[0])) < 0) {
          message_ = "a look behind whose width is not fixed";
          return false;
        }
        const size_t start =
            add({Op::kLook, 0, node.negated ? 1u : 0u, static_cast<uint32_t>(width)});
        return emit(node.children[0]) && close(start);
      }
    }
    return false;
  }

  size_t add(Instruction instruction) {
    program_.code.push_back(instruction);
    return program_.code.size() - 1;
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(program_.code.size()); }
  bool close(size_t start) {
    add({Op::kMatch});
    program_.code[start].a = here();
    return true;
  }

  bool any(const Node& node) {
    std::vector<size_t> ends;
    for (size_t i = 0; i < node.children.size(); ++i) {
      const bool last = i + 1 == node.children.size();
      const size_t split = last ? 0 : add({Op::kSplit, here() + 1});
      if (!emit(node.children[i])) {
        return false;
      }
      if (!last) {
        ends.push_back(add({Op::kJump}));
        program_.code[split].b = here();
      }
    }
    for (const size_t end : ends) {
      program_.code[end].a = here();
    }
    return true;
  }

  bool repeat(const Node& node) {
    const Node& child = node.children[0];
    if (child.kind == Node::Kind::kSet && !node.lazy) {
      add({Op::kGreedySet, child.set, node.least, node.most});
      return true;
    }
    for (uint32_t i = 0; i < node.least; ++i) {
      if (!emit(child)) {
        return false;
      }
    }
    const auto split = [&] { return add({Op::kSplit}); };
    const auto lead = [&](size_t at, uint32_t inside, uint32_t outside) {
      program_.code[at].a = node.lazy ? outside : inside;
      program_.code[at].b = node.lazy ? inside : outside;
    };
    if (node.most == kUnbounded) {
      const size_t start = split();
      const uint32_t reg = program_.registers++;
      add({Op::kRemember, reg});
      if (!emit(child)) {
        return false;
      }
      const size_t progress = add({Op::kProgress, reg});
      add({Op::kJump, static_cast<uint32_t>(start)});
      program_.code[progress].b = here();
      lead(start, static_cast<uint32_t>(start) + 1, here());
      return true;
    }
    std::vector<size_t> splits;
    for (uint32_t i = node.least; i < node.most; ++i) {
      splits.push_back(split());
      if (!emit(child)) {
        return false;
      }
    }
    for (const size_t at : splits) {
      lead(at, static_cast<uint32_t>(at) + 1, here());
    }
    return true;
  }

  /// Characters that the node always takes, or -1.
  static int64_t width_of(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kSet:
        return 1;
      case Node::Kind::kAll: {
        int64_t sum = 0;
        for (const Node& child : node.children) {
          const int64_t width = width_of(child);
          if (width < 0) {
            return -1;
          }
          sum += width;
        }
        return sum;
      }
      case Node::Kind::kAny: {
        const int64_t width = width_of(node.children[0]);
        for (const Node& child : node.children) {
          if (width_of(child) != width) {
            return -1;
          }
        }
        return width;
      }
      case Node::Kind::kRepeat: {
        const int64_t width = width_of(node.children[0]);
        return width < 0 || node.least != node.most ? -1 : width * node.least;
      }
      case Node::Kind::kAtomic:
        return width_of(node.children[0]);
      default:
        return 0;
    }
  }

  Program& program_;
  std::string& message_;
};

}  // namespace

void CharacterSet::finish() {
  std::sort(ranges.begin(), ranges.end());
  for (CharacterSet& inner : nested) {
    inner.finish();
  }
  for (uint32_t c = 0; c < 128; ++c) {
    ascii[c] = compute(c);
  }
}

bool CharacterSet::compute(uint32_t c) const {
  const uint32_t properties = unicode::properties(c);
  bool found = (categories >> (properties & 31) & 1) != 0 || (flags & properties & ~31u) != 0 ||
               (spaces && unicode::is_space(c));
  for (size_t i = 0; !found && i < ranges.size() && ranges[i].first <= c; ++i) {
    found = c <= ranges[i].second;
  }
  for (size_t i = 0; !found && i < nested.size(); ++i) {
    found = nested[i].has(c);
  }
  return found != negated;
}

bool compile(std::string_view pattern, Program& program, std::string& message) {
  program = {};
  if (pattern.size() > 65536 || !utf8::is_valid(pattern)) {
    message = "the pattern is not UTF-8, or longer than 64 KiB";
    return false;
  }
  Parser parser(pattern, program);
  Node root;
  if (!parser.parse(root)) {
    message = parser.message;
    return false;
  }
  Compiler compiler(program, message);
  if (!compiler.emit(root)) {
    return false;
  }
  compiler.add({Op::kMatch});
  return true;
}

}  // namespace tokenizers::regex
