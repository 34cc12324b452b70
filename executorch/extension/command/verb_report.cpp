#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/report/report.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/command/verbs.h>

#include <filesystem>
#include <iostream>

namespace executorch::extension::command {

void report(const ReportVerb& verb) {
  const ProgramChoice& choice = verb.run.program;
  std::string output = verb.output;
  if (output.empty()) output = std::filesystem::path(choice.model_path).replace_extension(".html");
  check_output_paths({output}, {choice.model_path, choice.data_path});
  const devtools::Profile profile = profile_choice(verb.run, verb.profile);
  const devtools::Json program = devtools::describe_file(choice.model_path);
  for (const devtools::Json& method : program["methods"]) {
    if (method["name"] != profile.method) continue;
    devtools::write_file(
        output, devtools::report_html(profile, method, devtools::read_memory_plan(method)));
  }
  std::cout << output << "\n";
}

}  // namespace executorch::extension::command
