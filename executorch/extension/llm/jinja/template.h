/// Templates in Jinja, as far as chat templates use it, rendered as the Python package does with
/// transformers' settings: trim_blocks, lstrip_blocks, loop controls, no changes to what is given.
///
/// In it are: text, comments, raw blocks, output, if, for (with loop.*, conditions, else, break and
/// continue), set (also of blocks and of a namespace's attributes), with, filter, macro, call,
/// generation; all expressions; filters and tests that filters.cpp, sequence_filters.cpp and
/// tests.cpp list; methods of texts, lists and mappings (methods.cpp); range, dict, namespace,
/// raise_exception, strftime_now. What is missing is an error that begins "not supported", never
/// another text.
#pragma once

#include <executorch/extension/llm/jinja/value.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace executorch::extension::llm::jinja {

struct Statement;

/// Of one rendering. A template comes from a file, and may want to run or grow forever.
struct Limits {
  /// Evaluations, and elements that are looked at.
  uint64_t steps = 20'000'000;
  /// Of all values that are made on the way.
  uint64_t bytes = 256 << 20;
  size_t output_bytes = 16 << 20;
};

/// Immutable; may be rendered by several threads at a time.
class Template {
 public:
  /// Empty after an error, of which `cause` then says the line, what was found and expected.
  static std::optional<Template> parse(std::string_view source, std::string& cause);

  /// With variables by name. Empty after an error, of which `cause` says the line.
  std::optional<std::string> render(const Mapping& variables, std::string& cause,
                                    const Limits& limits = Limits()) const;

 private:
  using Statements = std::vector<Statement>;
  explicit Template(std::shared_ptr<const Statements> statements)
      : statements_(std::move(statements)) {}
  std::shared_ptr<const Statements> statements_;
};

}  // namespace executorch::extension::llm::jinja
