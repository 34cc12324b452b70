#pragma once

#include <executorch/extension/llm/jinja/syntax.h>

namespace executorch::extension::llm::jinja {

/// The tokens of a template, and expressions in them.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  uint32_t line() const { return peek().line; }

 protected:
  /// Counts how deep expressions or blocks are nested, as long as it lives.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser) : nesting_(parser.nesting_) {
      if (++nesting_ > kMostNesting) {
        fail("expressions or blocks are nested more than " + std::to_string(kMostNesting) +
             " deep");
      }
    }
    ~Nested() { --nesting_; }

   private:
    uint32_t& nesting_;
  };

  const Token& peek(size_t offset = 0) const {
    return tokens_[std::min(at_ + offset, tokens_.size() - 1)];
  }
  Token next() { return tokens_[std::min(at_++, tokens_.size() - 1)]; }
  bool is(TokenKind kind) const { return peek().kind == kind; }
  bool is_operator(std::string_view text) const {
    return is(TokenKind::Operator) && peek().text == text;
  }
  bool is_name(std::string_view text) const { return is(TokenKind::Name) && peek().text == text; }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  std::string expect_name(const char* what);
  std::string expect_path(const char* what);
  [[noreturn]] void fail_here(const std::string& expected) const;

  /// Parses `a`, or the tuple `a, b`. Leaves a following `if` unread unless `has_condition`.
  ExpressionPtr parse_tuple(bool has_condition = true);
  ExpressionPtr parse_expression();
  /// Parses the filters of `{% filter trim %}` (`begins`) or `{% set x | trim %}`, whose operand is
  /// not written there. Null if there are none.
  ExpressionPtr parse_block_filters(bool begins);
  /// Whether an expression that was parsed has the name `caller` in it.
  bool uses_caller_ = false;

 private:
  ExpressionPtr make(Expression::Kind kind, std::vector<ExpressionPtr> operands = {},
                     std::string name = "") const;
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool has_filters = true);
  ExpressionPtr parse_postfix(ExpressionPtr operand);
  ExpressionPtr parse_subscript(ExpressionPtr operand);
  ExpressionPtr parse_filters(ExpressionPtr operand);
  ExpressionPtr parse_filter(ExpressionPtr operand);
  ExpressionPtr parse_test(ExpressionPtr operand);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_number();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  void parse_arguments(Expression& call);
  /// Sets the depth of a tree, and fails if it is too deep for the recursive functions that walk
  /// it.
  void measure(Expression& made) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t nesting_ = 0;
};

}  // namespace executorch::extension::llm::jinja
