#include <executorch/extension/llm/tokenizers/regex_program.h>
#include <executorch/extension/llm/tokenizers/regex_syntax.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>

namespace tokenizers::regex {
namespace {

constexpr size_t kMaxCode = 50000;

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
        add({node.anchor, node.set});
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
      if (!emit(node.children[i])) return false;
      if (!last) {
        ends.push_back(add({Op::kJump}));
        program_.code[split].b = here();
      }
    }
    for (const size_t end : ends) program_.code[end].a = here();
    return true;
  }

  bool repeat(const Node& node) {
    const Node& child = node.children[0];
    if (child.kind == Node::Kind::kSet && !node.lazy) {
      add({Op::kGreedySet, child.set, node.least, node.most});
      return true;
    }
    for (uint32_t i = 0; i < node.least; ++i) {
      if (!emit(child)) return false;
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
      if (!emit(child)) return false;
      const size_t progress = add({Op::kProgress, reg});
      add({Op::kJump, static_cast<uint32_t>(start)});
      program_.code[progress].b = here();
      lead(start, static_cast<uint32_t>(start) + 1, here());
      return true;
    }
    std::vector<size_t> splits;
    for (uint32_t i = node.least; i < node.most; ++i) {
      splits.push_back(split());
      if (!emit(child)) return false;
    }
    for (const size_t at : splits) lead(at, static_cast<uint32_t>(at) + 1, here());
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
          if (width < 0) return -1;
          sum += width;
        }
        return sum;
      }
      case Node::Kind::kAny: {
        const int64_t width = width_of(node.children[0]);
        for (const Node& child : node.children) {
          if (width_of(child) != width) return -1;
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

bool compile(std::string_view pattern, Dialect dialect, Program& program, std::string& message) {
  program = {};
  if (pattern.size() > 65536 || !utf8::is_valid(pattern)) {
    message = "the pattern is not UTF-8, or longer than 64 KiB";
    return false;
  }
  Node root;
  if (!parse(pattern, dialect, program, root, message)) return false;
  Compiler compiler(program, message);
  if (!compiler.emit(root)) return false;
  compiler.add({Op::kMatch});
  return true;
}

}  // namespace tokenizers::regex
