#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/memory/memory_plan.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {
namespace {

devtools::MemoryPlan plan_of(const MemoryVerb& verb) {
  const devtools::Json program = devtools::describe_file(verb.model);
  if (program["kind"] != "program") fail(verb.model + " is no program");
  std::vector<std::string> names;
  for (const devtools::Json& method : program["methods"]) {
    names.push_back(method["name"]);
    if (verb.method.empty() || names.back() == verb.method) {
      return devtools::read_memory_plan(method);
    }
  }
  fail("no method '" + verb.method + "' in " + verb.model + suggestion(verb.method, names));
}

}  // namespace

void memory(const MemoryVerb& verb) {
  check_output_paths({verb.svg}, {verb.model});
  const devtools::MemoryPlan plan = plan_of(verb);
  std::cout << (verb.json ? devtools::json_text(devtools::to_json(plan), 1) + "\n"
                          : devtools::to_text(plan));
  for (const devtools::MemoryArena& arena : plan.arenas) {
    if (verb.svg.empty()) break;
    const bool is_first = &arena == &plan.arenas[0];
    const size_t dot = verb.svg.rfind(".svg");
    const std::string path =
        is_first ? verb.svg : verb.svg.substr(0, dot) + "-" + std::to_string(arena.id) + ".svg";
    devtools::write_file(path, devtools::to_svg(plan, arena));
  }
}

}  // namespace executorch::extension::command
