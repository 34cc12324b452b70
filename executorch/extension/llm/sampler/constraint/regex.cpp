#include <executorch/extension/llm/sampler/constraint/regex.h>

#include <executorch/extension/llm/sampler/constraint/regex_parser.h>

namespace executorch::extension::llm::constraint {
namespace {

using Kind = Regex::Kind;
using Node = Regex::Node;

/// Removes ^ at the beginning (`at_start`) or $ at the end of the expression. Returns whether all
/// alternatives had one; throws if only some had.
bool strip_anchor(Node& node, bool at_start) {
  switch (node.kind) {
    case Kind::Start:
    case Kind::End:
      if ((node.kind == Kind::Start) != at_start) return false;
      node = Node{};
      return true;
    case Kind::Sequence: {
      // Repeated anchors, as in ^^a, are removed, too.
      bool stripped = false;
      while (!node.children.empty()) {
        Node& outer = at_start ? node.children.front() : node.children.back();
        if (!strip_anchor(outer, at_start)) return stripped;
        stripped = true;
        if (outer.kind != Kind::Empty) return true;
        node.children.erase(at_start ? node.children.begin() : node.children.end() - 1);
      }
      return stripped;
    }
    case Kind::Alternation: {
      size_t n_stripped = 0;
      for (Node& child : node.children) n_stripped += strip_anchor(child, at_start);
      if (n_stripped != 0 && n_stripped != node.children.size()) {
        throw Unusable("anchors in some branches of a group only are not supported");
      }
      return n_stripped != 0;
    }
    default:
      return false;
  }
}

class Adder {
 public:
  Adder(NfaBuilder& builder, AddCharacter add_character)
      : builder_(builder), add_character_(add_character) {}

  void add(const Node& node, State from, State to) {
    switch (node.kind) {
      case Kind::Set:
        return add_character_(builder_, from, to, node.set);
      case Kind::Empty:
        return builder_.add_epsilon(from, to);
      case Kind::Sequence:
        for (const Node& child : node.children) from = add_after(child, from);
        return builder_.add_epsilon(from, to);
      case Kind::Alternation:
        for (const Node& child : node.children) add(child, from, to);
        return;
      case Kind::Repeat:
        return add_repeat(node, from, to);
      case Kind::Start:
      case Kind::End:
        throw Unusable("^ and $ are supported at the ends of the expression only");
    }
  }

 private:
  State add_after(const Node& node, State from) {
    const State to = builder_.add_state();
    add(node, from, to);
    return to;
  }

  void add_repeat(const Node& node, State from, State to) {
    const Node& what = node.children[0];
    for (uint32_t i = 0; i < node.min; ++i) from = add_after(what, from);
    if (node.max == Node::kUnbounded) {
      // The loop gets its own state, which no other edge may enter.
      const State loop = builder_.add_state();
      builder_.add_epsilon(from, loop);
      builder_.add_epsilon(add_after(what, loop), loop);
      return builder_.add_epsilon(loop, to);
    }
    for (uint32_t i = node.min; i < node.max; ++i) {
      builder_.add_epsilon(from, to);
      from = add_after(what, from);
    }
    builder_.add_epsilon(from, to);
  }

  NfaBuilder& builder_;
  AddCharacter add_character_;
};

void add_anything(NfaBuilder& builder, State at, AddCharacter add_character) {
  add_character(builder, at, at, CodePointSet::all());
}

}  // namespace

Regex::Regex(const std::string& pattern) : root_(RegexParser(pattern).parse()) {}

void Regex::add_whole(NfaBuilder& builder, State from, State to, AddCharacter add_character) const {
  Node node = root_;
  // ^ and $ may be there; they say what holds anyway, so branches may differ in them.
  std::vector<Node> branches{node};
  if (node.kind == Kind::Alternation) branches = node.children;
  for (Node& branch : branches) {
    strip_anchor(branch, true);
    strip_anchor(branch, false);
    Adder(builder, add_character).add(branch, from, to);
  }
}

void Regex::add_anywhere(NfaBuilder& builder, State from, State to,
                         AddCharacter add_character) const {
  std::vector<Node> branches{root_};
  if (root_.kind == Kind::Alternation) branches = root_.children;
  for (Node& branch : branches) {
    const State first = builder.add_state(), last = builder.add_state();
    builder.add_epsilon(from, first);
    if (!strip_anchor(branch, true)) add_anything(builder, first, add_character);
    if (!strip_anchor(branch, false)) add_anything(builder, last, add_character);
    Adder(builder, add_character).add(branch, first, last);
    builder.add_epsilon(last, to);
  }
}

}  // namespace executorch::extension::llm::constraint
