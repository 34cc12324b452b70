#include <executorch/extension/llm/jinja/template.h>

#include <executorch/extension/llm/jinja/evaluator.h>

#include <new>

namespace executorch::extension::llm::jinja {
namespace {

/// Ten times what the longest known ones have.
constexpr size_t kMostSource = 1 << 20;

/// Runs `make`, whose failures become a cause.
template <typename Result, typename Make>
std::optional<Result> guarded(std::string& cause, const Make& make) {
  try {
    return make();
  } catch (const Failure& failure) {
    cause = "line " + std::to_string(failure.line) + ": " + failure.what();
  } catch (const std::bad_alloc&) {
    cause = "there is not enough memory";
  }
  return std::nullopt;
}

}  // namespace

std::optional<Template> Template::parse(std::string_view source, std::string& cause) {
  return guarded<Template>(cause, [&] {
    if (source.size() > kMostSource) {
      fail("the template has " + std::to_string(source.size()) + " bytes; expected at most " +
           std::to_string(kMostSource));
    }
    return Template(std::make_shared<const Statements>(jinja::parse(source)));
  });
}

std::optional<std::string> Template::render(const Mapping& variables, std::string& cause,
                                            const Limits& limits) const {
  return guarded<std::string>(cause,
                              [&] { return Evaluator(variables, limits).run(*statements_); });
}

}  // namespace executorch::extension::llm::jinja
