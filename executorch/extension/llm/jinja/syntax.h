/// Templates as trees.
#pragma once

#include <executorch/extension/llm/jinja/value.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace executorch::extension::llm::jinja {

enum class TokenKind : uint8_t {
  Data,
  OutputBegin,
  OutputEnd,
  BlockBegin,
  BlockEnd,
  Name,
  Text,
  Integer,
  Float,
  Operator,
  End
};

struct Token {
  TokenKind kind;
  /// The source text of data, names and operators; for a string, what is between its quotes, with
  /// escapes replaced.
  std::string text;
  uint32_t line;
};

/// Divides a template into tokens. Removes white space as transformers' settings (trim_blocks,
/// lstrip_blocks) say, and at a `-` in a tag. Throws Failure.
std::vector<Token> tokens_of(std::string_view source);

/// How deep expressions, and blocks, may be nested.
inline constexpr uint32_t kMostNesting = 100;

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    Literal,      // value
    Name,         // name
    List,         // operands
    Tuple,        // operands
    Dict,         // operands: key, value, key, value ...
    Attribute,    // operands[0] . name
    Item,         // operands[0] [ operands[1] ]
    Slice,        // operands[0] [ 1 : 2 : 3 ], each of which may be null
    Call,         // operands[0] ( the other operands, keywords )
    Filter,       // operands[0] | name ( the other operands, keywords ); null: what a block wrote
    Test,         // operands[0] is name ( the other operands )
    Not,          // operands[0]
    Negative,     // operands[0]
    Positive,     // operands[0]
    Arithmetic,   // operands[0] name operands[1]
    Concat,       // the texts of all operands
    Compare,      // operands[0] names[0] operands[1] names[1] ...
    And,          // operands[0], operands[1]
    Or,           // operands[0], operands[1]
    Conditional,  // operands[0] if operands[1] else operands[2], which may be null
  };
  Kind kind;
  uint32_t line = 0;
  /// Of the tree below it.
  uint32_t depth = 1;
  std::string name;
  Value value;
  std::vector<ExpressionPtr> operands;
  std::vector<std::string> names;
  /// Of a call: arguments with a name; `*` and `**` stand for those that a value has.
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
};

struct Statement;
using Block = std::vector<Statement>;

/// What a loop or `set` assigns to: names, or one attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  /// Whether the value is unpacked, also for a single name (`a,`).
  bool is_tuple = false;
  std::string attribute;
};

struct Branch;
struct Macro;

struct Statement {
  enum class Kind : uint8_t {
    Text,      // text
    Output,    // expression
    If,        // branches
    For,       // target, expression, condition (or null), body, otherwise
    Set,       // target, expression
    SetBlock,  // target, body, expression: filters around it, or null
    Filter,    // body, expression: filters around it
    Group,     // body: blocks that say something to trainers only
    Macro,     // macro
    Call,      // expression: a call of a macro, to which `macro`, the body, is the caller
    With,      // assignments, body
    Break,
    Continue
  };
  Kind kind;
  uint32_t line = 0;
  std::string text;
  Target target;
  ExpressionPtr expression, condition;
  Block body, otherwise;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  std::unique_ptr<Macro> macro;
};

struct Branch {
  /// Null for else.
  ExpressionPtr condition;
  Block body;
};

struct Macro {
  std::string name;
  std::vector<std::string> parameters;
  /// The defaults of the last parameters.
  std::vector<ExpressionPtr> defaults;
  Block body;
  /// Whether the name `caller` is in the body. Only such macros can be called by {% call %}.
  bool uses_caller = false;
};

/// Throws Failure.
Block parse(std::string_view source);

}  // namespace executorch::extension::llm::jinja
