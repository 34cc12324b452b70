#include <executorch/extension/llm/jinja/parser.h>

#include <algorithm>
#include <charconv>

namespace executorch::extension::llm::jinja {
namespace {

using Kind = Expression::Kind;

const char* name_of(TokenKind kind) {
  switch (kind) {
    case TokenKind::Data:
      return "text outside of tags";
    case TokenKind::OutputBegin:
      return "{{";
    case TokenKind::OutputEnd:
      return "}}";
    case TokenKind::BlockBegin:
      return "{%";
    case TokenKind::BlockEnd:
      return "%}";
    default:
      return "the template's end";
  }
}

template <typename... Operands>
std::vector<ExpressionPtr> list(Operands... operands) {
  std::vector<ExpressionPtr> made;
  (made.push_back(std::move(operands)), ...);
  return made;
}

}  // namespace

bool ExpressionParser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

void ExpressionParser::fail_here(const std::string& expected) const {
  const Token& found = peek();
  const bool has_text = found.kind >= TokenKind::Name && found.kind <= TokenKind::Operator;
  fail("found " + (has_text ? "'" + found.text.substr(0, 40) + "'" : name_of(found.kind)) +
       "; expected " + expected);
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_here("'" + std::string(text) + "'");
}

std::string ExpressionParser::expect_name(const char* what) {
  if (!is(TokenKind::Name)) fail_here(what);
  return next().text;
}

void ExpressionParser::measure(Expression& made) const {
  for (const ExpressionPtr& operand : made.operands) {
    if (operand != nullptr) made.depth = std::max(made.depth, operand->depth + 1);
  }
  for (const auto& keyword : made.keywords) {
    made.depth = std::max(made.depth, keyword.second->depth + 1);
  }
  if (made.depth > kMostNesting) {
    fail("an expression is nested more than " + std::to_string(kMostNesting) + " deep");
  }
}

ExpressionPtr ExpressionParser::make(Kind kind, std::vector<ExpressionPtr> operands,
                                     std::string name) const {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line();
  made->operands = std::move(operands);
  made->name = std::move(name);
  measure(*made);
  return made;
}

ExpressionPtr ExpressionParser::parse_tuple(bool has_condition) {
  auto first = has_condition ? parse_expression() : parse_or();
  if (!is_operator(",")) return first;
  auto operands = list(std::move(first));
  while (skip_operator(",")) {
    if (is(TokenKind::BlockEnd) || is(TokenKind::OutputEnd) || is_operator(")")) break;
    operands.push_back(has_condition ? parse_expression() : parse_or());
  }
  return make(Kind::Tuple, std::move(operands));
}

ExpressionPtr ExpressionParser::parse_expression() {
  const Nested nested(*this);
  auto value = parse_or();
  while (skip_name("if")) {
    auto condition = parse_or();
    auto otherwise = skip_name("else") ? parse_expression() : nullptr;
    value =
        make(Kind::Conditional, list(std::move(value), std::move(condition), std::move(otherwise)));
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  auto left = parse_and();
  while (skip_name("or")) {
    auto right = parse_and();
    left = make(Kind::Or, list(std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  auto left = parse_not();
  while (skip_name("and")) {
    auto right = parse_not();
    left = make(Kind::And, list(std::move(left), std::move(right)));
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  const Nested nested(*this);
  return skip_name("not") ? make(Kind::Not, list(parse_not())) : parse_compare();
}

ExpressionPtr ExpressionParser::parse_compare() {
  auto first = parse_sum();
  std::vector<std::string> names;
  auto operands = list(std::move(first));
  for (;;) {
    const bool is_not_in =
        is_name("not") && peek(1).kind == TokenKind::Name && peek(1).text == "in";
    if (is_not_in) next();
    const bool is_order = is_operator("==") || is_operator("!=") || is_operator("<") ||
                          is_operator("<=") || is_operator(">") || is_operator(">=");
    if (!is_order && !is_name("in")) break;
    const std::string name = next().text;
    names.push_back(is_not_in ? "not in" : name);
    operands.push_back(parse_sum());
  }
  if (names.empty()) return std::move(operands[0]);
  auto made = make(Kind::Compare, std::move(operands));
  made->names = std::move(names);
  return made;
}

ExpressionPtr ExpressionParser::parse_sum() {
  auto left = parse_concat();
  while (is_operator("+") || is_operator("-")) {
    const std::string name = next().text;
    auto right = parse_concat();
    left = make(Kind::Arithmetic, list(std::move(left), std::move(right)), name);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concat() {
  auto operands = list(parse_product());
  while (skip_operator("~")) operands.push_back(parse_product());
  return operands.size() == 1 ? std::move(operands[0]) : make(Kind::Concat, std::move(operands));
}

ExpressionPtr ExpressionParser::parse_product() {
  auto left = parse_power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    const std::string name = next().text;
    auto right = parse_power();
    left = make(Kind::Arithmetic, list(std::move(left), std::move(right)), name);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  auto left = parse_unary();
  while (skip_operator("**")) {
    auto right = parse_unary();
    left = make(Kind::Arithmetic, list(std::move(left), std::move(right)), "**");
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool has_filters) {
  const Nested nested(*this);
  ExpressionPtr value;
  if (skip_operator("-")) {
    value = make(Kind::Negative, list(parse_unary(false)));
  } else if (skip_operator("+")) {
    value = make(Kind::Positive, list(parse_unary(false)));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return has_filters ? parse_filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr operand) {
  for (;;) {
    if (is_operator(".") || is_operator("[")) {
      operand = parse_subscript(std::move(operand));
    } else if (is_operator("(")) {
      operand = make(Kind::Call, list(std::move(operand)));
      parse_arguments(*operand);
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr operand) {
  if (skip_operator(".")) {
    if (is(TokenKind::Integer)) return make(Kind::Item, list(std::move(operand), parse_number()));
    return make(Kind::Attribute, list(std::move(operand)), expect_name("an attribute's name"));
  }
  expect_operator("[");
  std::vector<ExpressionPtr> parts;
  bool is_slice = false;
  ExpressionPtr part;
  for (;;) {
    if (is_operator(":") && parts.size() < 2) {
      next();
      is_slice = true;
      parts.push_back(std::move(part));
    } else if (is_operator("]") || part != nullptr) {
      break;
    } else {
      part = parse_expression();
    }
  }
  if (is_operator(",")) fail_unsupported("subscripts with a comma");
  expect_operator("]");
  if (!is_slice) {
    if (part == nullptr) fail("found []; expected an index in it");
    return make(Kind::Item, list(std::move(operand), std::move(part)));
  }
  parts.push_back(std::move(part));
  parts.resize(3);
  parts.insert(parts.begin(), std::move(operand));
  return make(Kind::Slice, std::move(parts));
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr operand) {
  for (;;) {
    if (skip_operator("|")) {
      operand = parse_filter(std::move(operand));
    } else if (is_name("is")) {
      operand = parse_test(std::move(operand));
    } else if (is_operator("(")) {
      operand = make(Kind::Call, list(std::move(operand)));
      parse_arguments(*operand);
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::parse_block_filters(bool begins) {
  ExpressionPtr filters;
  for (; begins || skip_operator("|"); begins = false) filters = parse_filter(std::move(filters));
  return filters;
}

/// `a.b`: names of filters and tests may have dots, so methods of their results need parentheses.
std::string ExpressionParser::expect_path(const char* what) {
  std::string path = expect_name(what);
  while (skip_operator(".")) path += "." + expect_name(what);
  return path;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr operand) {
  auto made = make(Kind::Filter, list(std::move(operand)), expect_path("a filter's name"));
  if (is_operator("(")) parse_arguments(*made);
  return made;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr operand) {
  next();
  const bool is_negated = skip_name("not");
  auto made = make(Kind::Test, list(std::move(operand)), expect_path("a test's name"));
  const bool is_word = is(TokenKind::Name) && !is_name("else") && !is_name("or") && !is_name("and");
  if (is_operator("(")) {
    parse_arguments(*made);
  } else if (is_word || is(TokenKind::Text) || is(TokenKind::Integer) || is(TokenKind::Float) ||
             is_operator("[") || is_operator("{")) {
    if (is_name("is")) fail("found a second 'is'; tests cannot follow each other");
    made->operands.push_back(parse_postfix(parse_primary()));
    measure(*made);
  }
  return is_negated ? make(Kind::Not, list(std::move(made))) : std::move(made);
}

ExpressionPtr ExpressionParser::parse_primary() {
  if (is(TokenKind::Name)) return parse_name();
  if (is(TokenKind::Integer) || is(TokenKind::Float)) return parse_number();
  if (is(TokenKind::Text)) {
    auto made = make(Kind::Literal);
    std::string text;
    while (is(TokenKind::Text)) text += next().text;
    made->value = Value::text(std::move(text));
    return made;
  }
  if (skip_operator("(")) {
    if (skip_operator(")")) return make(Kind::Tuple);
    auto made = parse_tuple();
    expect_operator(")");
    return made;
  }
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  fail_here("an expression");
}

ExpressionPtr ExpressionParser::parse_name() {
  auto made = make(Kind::Literal);
  const std::string name = next().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    made->value = Value::boolean(name[0] == 't' || name[0] == 'T');
  } else if (name != "none" && name != "None") {
    made->kind = Kind::Name;
    made->name = name;
    uses_caller_ = uses_caller_ || name == "caller";
  }
  return made;
}

ExpressionPtr ExpressionParser::parse_number() {
  auto made = make(Kind::Literal);
  const Token token = next();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::Float) {
    double number = 0;
    const auto read = std::from_chars(token.text.data(), end, number);
    if (read.ec != std::errc()) fail_unsupported("the number " + token.text.substr(0, 40));
    made->value = Value::number(number);
  } else {
    int64_t number = 0;
    const auto read = std::from_chars(token.text.data(), end, number);
    if (read.ec != std::errc()) fail_unsupported("whole numbers of more than 64 bits");
    made->value = Value::integer(number);
  }
  return made;
}

ExpressionPtr ExpressionParser::parse_list() {
  next();
  std::vector<ExpressionPtr> operands;
  while (!is_operator("]")) {
    if (!operands.empty()) expect_operator(",");
    if (is_operator("]")) break;
    operands.push_back(parse_expression());
  }
  expect_operator("]");
  return make(Kind::List, std::move(operands));
}

ExpressionPtr ExpressionParser::parse_dict() {
  next();
  std::vector<ExpressionPtr> operands;
  while (!is_operator("}")) {
    if (!operands.empty()) expect_operator(",");
    if (is_operator("}")) break;
    operands.push_back(parse_expression());
    expect_operator(":");
    operands.push_back(parse_expression());
  }
  expect_operator("}");
  return make(Kind::Dict, std::move(operands));
}

void ExpressionParser::parse_arguments(Expression& call) {
  expect_operator("(");
  bool is_first = true;
  bool has_star = false;
  bool has_stars = false;
  while (!is_operator(")")) {
    if (!is_first) expect_operator(",");
    is_first = false;
    if (has_stars && !is_operator(")")) fail_here("')' behind a value with **");
    if (is_operator(")")) break;
    if (is_operator("*") || is_operator("**")) {
      // As a keyword whose name is the operator; the elements or members are taken of its value.
      if (has_star && is_operator("*")) fail("found a second value with *");
      std::string name = next().text;
      (name == "*" ? has_star : has_stars) = true;
      call.keywords.emplace_back(std::move(name), parse_expression());
      continue;
    }
    const bool is_keyword =
        is(TokenKind::Name) && peek(1).kind == TokenKind::Operator && peek(1).text == "=";
    if (is_keyword) {
      std::string name = next().text;
      next();
      call.keywords.emplace_back(std::move(name), parse_expression());
    } else {
      if (!call.keywords.empty()) fail("found a value without a name behind one with a name");
      call.operands.push_back(parse_expression());
    }
  }
  expect_operator(")");
  measure(call);
}

}  // namespace executorch::extension::llm::jinja
