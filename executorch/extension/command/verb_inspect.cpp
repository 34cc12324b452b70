#include <executorch/devtools/inspect/describe.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {

void inspect(const InspectVerb& verb) {
  devtools::Json out = devtools::describe_file(verb.file);
  if (verb.data.empty()) {
    std::cout << (verb.json ? devtools::json_text(out, 2) + "\n" : devtools::to_text(out));
    return;
  }
  const devtools::Json data = devtools::describe_file(verb.data);
  if (out["kind"] != "program" || data["kind"] != "data") {
    fail("--data needs a program and a data file, found a " + out["kind"].get<std::string>() +
         " and a " + data["kind"].get<std::string>());
  }
  const auto missing = devtools::missing_external_data(out, data);
  if (verb.json) {
    std::cout << devtools::json_text({{"program", out}, {"data", data}, {"missing", missing}}, 2)
              << "\n";
  } else {
    std::cout << devtools::to_text(out) << "\n" << devtools::to_text(data);
  }
  if (missing.empty()) return;
  std::string cause = std::to_string(missing.size()) + " tensors are not in " + verb.data;
  for (const std::string& line : missing) cause += "\n  " + line;
  fail(cause);
}

}  // namespace executorch::extension::command
