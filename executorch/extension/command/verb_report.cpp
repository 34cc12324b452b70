#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/report/report.h>
#include <executorch/extension/command/verbs.h>

#include <filesystem>
#include <iostream>

namespace executorch::extension::command {

void report(const ReportVerb& verb) {
  const devtools::Profile profile = profile_choice(verb.run, verb.profile);
  const devtools::Json program = devtools::describe_file(verb.run.program.model_path);
  std::string output = verb.output;
  if (output.empty()) {
    output = std::filesystem::path(verb.run.program.model_path).replace_extension(".html");
  }
  for (const devtools::Json& method : program["methods"]) {
    if (method["name"] != profile.method) continue;
    devtools::write_file(
        output, devtools::report_html(profile, method, devtools::read_memory_plan(method)));
  }
  std::cout << output << "\n";
}

}  // namespace executorch::extension::command
