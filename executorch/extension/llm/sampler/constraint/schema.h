/// What the parts of the compiler of JSON schemas share.
#pragma once

#include <executorch/extension/llm/sampler/constraint/nfa.h>

#include <nlohmann/json.hpp>
#include <string>

namespace executorch::extension::llm::constraint {

using Json = nlohmann::ordered_json;

/// Throws Unusable with a message that contains the place.
[[noreturn]] void fail_at(const std::string& pointer, const std::string& what);

/// The value of a keyword that is a size; `otherwise` if it is missing. Throws for other values.
uint64_t size_keyword(const Json& schema, const char* name, uint64_t otherwise,
                      const std::string& pointer);

/// Appends a reference token, escaped, to a JSON pointer.
std::string child(const std::string& pointer, const std::string& name);
std::string child(const std::string& pointer, size_t index);

/// Whether a keyword is an annotation, which constrains nothing.
bool is_annotation(const std::string& keyword);
/// Throws where `schema` is neither a boolean nor an object of keywords that are supported.
void check_keywords(const Json& schema, const std::string& pointer);

/// The types, of "null boolean object array string integer number", that `schema` allows; without a
/// `type`, all but integer.
std::vector<std::string> types_of(const Json& schema, const std::string& pointer);

/// The deepest nesting of schemas, in the document or through references.
inline constexpr int kMaxDepth = 100;

/// Counts nested calls in `depth` as long as it lives. Throws beyond kMaxDepth, which fits the
/// stack of any thread.
class Depth {
 public:
  Depth(int& depth, const std::string& pointer);
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};

/// A JSON schema with its references, and what can be derived from it without an automaton.
class SchemaDocument {
 public:
  /// Throws for text that is not JSON, is nested too deeply or is too long.
  explicit SchemaDocument(const std::string& text);

  const Json& root() const { return root_; }
  /// Resolves the `$ref` at `pointer`; writes the pointer of its target to `target`.
  const Json& resolve(const Json& ref, const std::string& pointer, std::string& target) const;

  /// The conjunction of two schemas. Throws where it cannot be expressed exactly.
  Json both(const Json& a, const Json& b, const std::string& pointer);
  /// An equivalent schema without $ref and allOf at its top.
  Json flat(const Json& schema, const std::string& pointer);
  /// Whether no value can satisfy both.
  bool exclude_each_other(const Json& a, const Json& b, const std::string& pointer, int depth = 0);
  /// Whether a value of an enum or const satisfies the other keywords of `schema`.
  bool allows(const Json& schema, const Json& value, const std::string& pointer) const;

 private:
  void merge_keyword(Json& into, const std::string& name, const Json& value,
                     const std::string& pointer);
  void merge_objects(Json& into, const Json& a, const Json& b, const std::string& pointer);
  /// Counts the pairs of elements of two arrays that are compared. Throws if there are too many.
  void count_pairs(const Json& a, const Json& b, const std::string& pointer);

  Json root_;
  size_t n_merged_ = 0;
  uint64_t n_pairs_ = 0;
  int depth_ = 0;  // calls of both() and flat() within one another
};

}  // namespace executorch::extension::llm::constraint
