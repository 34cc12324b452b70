#pragma once

#include <executorch/extension/llm/sampler/constraint/schema.h>

#include <deque>
#include <map>

namespace executorch::extension::llm::constraint {

/// Compiles a schema to an automaton. Schemas that are referred to or repeated, and the schema of
/// any value, become rules; others are written out in place.
class JsonCompiler {
 public:
  explicit JsonCompiler(const std::string& schema) : document_(schema) {}
  Nfa compile();

 private:
  struct Pending {
    uint32_t rule;
    Json schema;
    std::string pointer;
  };

  /// The rule called `name`; for a new name, a rule for `schema`, which is compiled later.
  uint32_t rule(const std::string& name, const Json& schema, const std::string& pointer);
  uint32_t any_value();

  /// Adds optional white space: space() around brackets and after commas, blank() elsewhere.
  State space(State from);
  State blank(State from);
  /// Adds a colon with optional white space; returns the state after it.
  State colon(State from);
  /// Adds `text` and optional white space; returns the state after it.
  State text_and_space(State from, const std::string& text);

  void add_value(State from, State to, const Json& schema, const std::string& pointer);
  void add_branches(State from, State to, const Json& schema, const std::string& pointer,
                    const char* keyword);
  void add_of_type(State from, State to, const std::string& type, const Json& schema,
                   const std::string& pointer);
  void add_constant(State from, State to, const Json& value);

  void add_string(State from, State to, const Json& schema, const std::string& pointer);
  /// Adds all strings except `names`, with their quotes.
  void add_other_string(State from, State to, const std::vector<std::string>& names);
  State add_quoted(State from, const std::string& text);

  void add_array(State from, State to, const Json& schema, const std::string& pointer);
  void add_object(State from, State to, const Json& schema, const std::string& pointer);
  void add_map(State from, State to, const Json& schema, const std::string& pointer);

  SchemaDocument document_;
  NfaBuilder builder_;
  std::map<std::string, uint32_t> rules_;
  std::deque<Pending> pending_;
  int depth_ = 0;
};

}  // namespace executorch::extension::llm::constraint
