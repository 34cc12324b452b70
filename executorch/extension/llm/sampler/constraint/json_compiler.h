#pragma once

#include <executorch/extension/llm/sampler/constraint/schema.h>

#include <deque>
#include <map>

namespace executorch::extension::llm::constraint {

/// Makes the automaton of a schema: a rule for each place that is referred to, repeated, or any
/// value; all else is written out where it stands.
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

  /// The rule of a schema that is known by `name`; made later if it is new.
  uint32_t rule(const std::string& name, const Json& schema, const std::string& pointer);
  uint32_t any_value();

  /// Around brackets and behind commas; elsewhere blank().
  State space(State from);
  State blank(State from);
  /// The state behind a colon and what stands around it.
  State colon(State from);
  /// The state behind `text` and space.
  State text_and_space(State from, const std::string& text);

  void add_value(State from, State to, const Json& schema, const std::string& pointer);
  void add_branches(State from, State to, const Json& schema, const std::string& pointer,
                    const char* keyword);
  void add_of_type(State from, State to, const std::string& type, const Json& schema,
                   const std::string& pointer);
  void add_constant(State from, State to, const Json& value);

  void add_string(State from, State to, const Json& schema, const std::string& pointer);
  /// Strings that are none of `names`, quotes included.
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
