// Renders templates for tests/chat_templates.
//
// Reads jobs from stdin, a JSON object in each line, and answers each with one:
//   template    Jinja text
//   variables   an object
// Answer: text, or error.

#include <executorch/extension/llm/jinja/from_json.h>
#include <executorch/extension/llm/jinja/template.h>

#include <iostream>

using executorch::extension::llm::jinja::Template;
using executorch::extension::llm::jinja::Value;
using executorch::extension::llm::jinja::value_of;
using Json = ::tokenizers::Json;

namespace {

Json answer(const Json& job) {
  std::string cause;
  const auto read = Template::parse(job["template"].get<std::string>(), cause);
  std::optional<std::string> text;
  const Value variables = value_of(job["variables"]);
  if (read.has_value()) text = read->render(*variables.as_mapping(), cause);
  Json made = Json::object();
  made[text.has_value() ? "text" : "error"] = text.has_value() ? *text : cause;
  return made;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    // Texts that are no UTF-8 cannot be in JSON.
    std::cout << answer(Json::parse(line)).dump(-1, ' ', true, Json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
