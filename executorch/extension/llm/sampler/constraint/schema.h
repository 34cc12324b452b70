/// What the parts of the compiler of JSON schemas share.
#pragma once

#include <executorch/extension/llm/sampler/constraint/nfa.h>

#include <nlohmann/json.hpp>
#include <string>

namespace executorch::extension::llm::constraint {

using Json = nlohmann::ordered_json;

/// Throws Unusable that names the place.
[[noreturn]] void fail_at(const std::string& pointer, const std::string& what);

/// Of a keyword that is a size. Throws for what is none; `otherwise` where it is missing.
uint64_t size_keyword(const Json& schema, const char* name, uint64_t otherwise,
                      const std::string& pointer);

/// Reference tokens, escaped and put behind a pointer.
std::string child(const std::string& pointer, const std::string& name);
std::string child(const std::string& pointer, size_t index);

/// Whether a keyword only describes.
bool is_annotation(const std::string& keyword);
/// Throws where `schema` is neither a boolean nor an object of keywords that are supported.
void check_keywords(const Json& schema, const std::string& pointer);

/// "null boolean object array string integer number": those that `schema` names, else all but
/// integer.
std::vector<std::string> types_of(const Json& schema, const std::string& pointer);

/// Of schemas within one another, in the text or as it is read.
inline constexpr int kMaxDepth = 100;

/// One of the calls within one another that `depth` counts, which may be no more than the stack of
/// any thread holds: throws beyond kMaxDepth.
class Depth {
 public:
  Depth(int& depth, const std::string& pointer);
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};

/// A document of schemas, and what can be concluded from them without making an automaton.
class SchemaDocument {
 public:
  /// Throws for what is not JSON, nested too deeply or too long.
  explicit SchemaDocument(const std::string& text);

  const Json& root() const { return root_; }
  /// What `$ref` at `pointer` means; its pointer goes to `target`.
  const Json& resolve(const Json& ref, const std::string& pointer, std::string& target) const;

  /// A schema that says what both say. Texts of `a` that `b` excludes may be left only where this
  /// throws.
  Json both(const Json& a, const Json& b, const std::string& pointer);
  /// The same schema without $ref and allOf at its top.
  Json flat(const Json& schema, const std::string& pointer);
  /// Whether no value can satisfy both.
  bool exclude_each_other(const Json& a, const Json& b, const std::string& pointer, int depth = 0);
  /// Whether `value`, of an enumeration, satisfies the other keywords of `schema`.
  bool allows(const Json& schema, const Json& value, const std::string& pointer) const;

 private:
  void merge_keyword(Json& into, const std::string& name, const Json& value,
                     const std::string& pointer);
  void merge_objects(Json& into, const Json& a, const Json& b, const std::string& pointer);

  Json root_;
  size_t n_merged_ = 0;
  int depth_ = 0;  // calls of both() and flat() within one another
};

}  // namespace executorch::extension::llm::constraint
