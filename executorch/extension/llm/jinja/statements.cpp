// The blocks of a template: {% if %}, {% for %} and others.
#include <executorch/extension/llm/jinja/parser.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace executorch::extension::llm::jinja {
namespace {

using Kind = Statement::Kind;
using Ends = std::initializer_list<std::string_view>;

class TemplateParser : ExpressionParser {
 public:
  explicit TemplateParser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Block parse_all() {
    try {
      return parse_block({});
    } catch (Failure& failure) {
      if (failure.line == 0) failure.line = line();
      throw;
    }
  }

 private:
  Statement make(Kind kind) const {
    Statement made;
    made.kind = kind;
    made.line = line();
    return made;
  }

  void expect(TokenKind kind, const char* what) {
    if (!is(kind)) fail_here(what);
    next();
  }
  void expect_block_end() { expect(TokenKind::BlockEnd, "%}"); }

  /// Statements up to `{%` and one of the words `ends`, which is left to be read.
  Block parse_block(Ends ends) {
    const Nested nested(*this);
    Block block;
    for (;;) {
      if (is(TokenKind::Data)) {
        block.push_back(make(Kind::Text));
        block.back().text = next().text;
      } else if (is(TokenKind::OutputBegin)) {
        next();
        block.push_back(make(Kind::Output));
        block.back().expression = parse_tuple();
        expect(TokenKind::OutputEnd, "}}");
      } else if (is(TokenKind::BlockBegin)) {
        next();
        if (!is(TokenKind::Name)) fail_here("a word such as if or for");
        if (std::find(ends.begin(), ends.end(), peek().text) != ends.end()) return block;
        block.push_back(parse_statement(ends));
      } else {
        if (ends.size() != 0) fail_here("{% " + std::string(*(ends.end() - 1)) + " %}");
        return block;
      }
    }
  }

  Statement parse_statement(Ends ends) {
    if (is_name("if")) return parse_if();
    if (is_name("for")) return parse_for();
    if (is_name("set")) return parse_set();
    if (is_name("macro")) return parse_macro();
    if (is_name("call")) return parse_call();
    if (is_name("with")) return parse_with();
    if (is_name("filter")) return parse_filter_block();
    if (is_name("generation")) {
      Statement made = make(Kind::Group);
      next();
      made.body = parse_body("endgeneration");
      return made;
    }
    if (is_name("break") || is_name("continue")) {
      if (n_loops_ == 0) fail("found '" + peek().text + "' outside of a loop");
      Statement made = make(is_name("break") ? Kind::Break : Kind::Continue);
      next();
      expect_block_end();
      return made;
    }
    for (const char* const word :
         {"autoescape", "block", "do", "extends", "from", "import", "include", "print", "trans"}) {
      if (is_name(word)) fail_unsupported("the block " + std::string(word));
    }
    fail_here(ends.size() == 0 ? "the name of a block"
                               : "the name of a block, or " + std::string(*(ends.end() - 1)));
  }

  /// From the end of this tag to behind that of `end`.
  Block parse_body(std::string_view end) {
    expect_block_end();
    const uint32_t n_loops = std::exchange(n_loops_, 0);
    ++n_inner_;
    Block body = parse_block({end});
    --n_inner_;
    n_loops_ = n_loops;
    next();
    expect_block_end();
    return body;
  }

  Statement parse_if() {
    Statement made = make(Kind::If);
    while (is_name("if") || is_name("elif")) {
      next();
      Branch branch;
      branch.condition = parse_tuple(false);
      expect_block_end();
      branch.body = parse_block({"elif", "else", "endif"});
      made.branches.push_back(std::move(branch));
    }
    if (skip_name("else")) {
      expect_block_end();
      made.branches.emplace_back();
      made.branches.back().body = parse_block({"endif"});
    }
    next();
    expect_block_end();
    return made;
  }

  std::string parse_target_name() {
    std::string name = expect_name("the name of a variable");
    for (const char* const word : {"true", "false", "none", "True", "False", "None"}) {
      if (name == word) fail("found '" + name + "', to which nothing can be assigned");
    }
    if (name == "loop" || name == "caller") fail_unsupported("a variable with the name " + name);
    return name;
  }

  Target parse_target() {
    Target target;
    const bool has_parentheses = skip_operator("(");
    target.names.push_back(parse_target_name());
    while (skip_operator(",")) {
      target.is_tuple = true;
      if (!is(TokenKind::Name) || is_name("in")) break;
      target.names.push_back(parse_target_name());
    }
    if (has_parentheses) expect_operator(")");
    return target;
  }

  Statement parse_for() {
    Statement made = make(Kind::For);
    next();
    made.target = parse_target();
    if (!skip_name("in")) fail_here("'in'");
    made.expression = parse_tuple(false);
    if (is_name("recursive")) fail_unsupported("recursive loops");
    if (skip_name("if")) made.condition = parse_expression();
    if (is_name("recursive")) fail_unsupported("recursive loops");
    expect_block_end();
    ++n_loops_;
    ++n_inner_;
    made.body = parse_block({"else", "endfor"});
    --n_loops_;
    --n_inner_;
    if (skip_name("else")) {
      expect_block_end();
      made.otherwise = parse_block({"endfor"});
    }
    next();
    expect_block_end();
    return made;
  }

  Statement parse_set() {
    Statement made = make(Kind::Set);
    next();
    made.target = parse_target();
    if (!made.target.is_tuple && skip_operator(".")) {
      made.target.attribute = expect_name("an attribute's name");
    }
    if (skip_operator("=")) {
      made.expression = parse_tuple();
      expect_block_end();
      return made;
    }
    made.kind = Kind::SetBlock;
    if (made.target.is_tuple) fail_here("'='");
    made.expression = parse_block_filters(false);
    made.body = parse_body("endset");
    return made;
  }

  Statement parse_filter_block() {
    Statement made = make(Kind::Filter);
    next();
    made.expression = parse_block_filters(true);
    made.body = parse_body("endfilter");
    return made;
  }

  Statement parse_macro() {
    Statement made = make(Kind::Macro);
    // A macro sees the variables around it; only those of the whole template are there for as long.
    if (n_inner_ > 0) fail_unsupported("a macro inside of a loop, a macro or another such block");
    next();
    made.macro = std::make_unique<Macro>();
    made.macro->name = parse_target_name();
    parse_parameters(*made.macro);
    parse_macro_body(*made.macro, "endmacro");
    return made;
  }

  void parse_parameters(Macro& macro) {
    expect_operator("(");
    while (!is_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      if (is_operator(")")) break;
      macro.parameters.push_back(parse_target_name());
      if (skip_operator("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        fail_here("'=': parameters before it have a default");
      }
    }
    expect_operator(")");
  }

  void parse_macro_body(Macro& macro, std::string_view end) {
    const bool used_before = std::exchange(uses_caller_, false);
    macro.body = parse_body(end);
    macro.uses_caller = uses_caller_;
    uses_caller_ = uses_caller_ || used_before;
  }

  Statement parse_call() {
    Statement made = make(Kind::Call);
    next();
    made.macro = std::make_unique<Macro>();
    made.macro->name = "caller";
    if (is_operator("(")) parse_parameters(*made.macro);
    made.expression = parse_expression();
    if (made.expression->kind != Expression::Kind::Call) fail_here("a call of a macro before it");
    parse_macro_body(*made.macro, "endcall");
    return made;
  }

  Statement parse_with() {
    Statement made = make(Kind::With);
    next();
    while (!is(TokenKind::BlockEnd)) {
      if (!made.assignments.empty()) expect_operator(",");
      Target target = parse_target();
      expect_operator("=");
      made.assignments.emplace_back(std::move(target), parse_expression());
    }
    expect_block_end();
    ++n_inner_;
    made.body = parse_block({"endwith"});
    --n_inner_;
    next();
    expect_block_end();
    return made;
  }

  uint32_t n_loops_ = 0;
  /// Blocks around this one that have variables of their own.
  uint32_t n_inner_ = 0;
};

}  // namespace

Block parse(std::string_view source) {
  return TemplateParser(tokens_of(source)).parse_all();
}

}  // namespace executorch::extension::llm::jinja
