#include <executorch/devtools/inspect/diff.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {

bool diff(const DiffVerb& verb) {
  const devtools::Json diff = devtools::diff_programs(verb.a, verb.b);
  std::cout << (verb.json ? devtools::json_text(diff, 1) + "\n" : devtools::diff_text(diff));
  return diff["equal"].get<bool>();
}

void strip(const StripVerb& verb) {
  const std::string& output = verb.output.empty() ? verb.model : verb.output;
  const devtools::StripResult result = devtools::strip_program(verb.model, output);
  if (verb.json) {
    std::cout << devtools::json_text({{"output", output}, {"bytes", {result.before, result.after}}})
              << "\n";
    return;
  }
  std::cout << output << ": " << result.after << " bytes, "
            << (result.before == result.after
                    ? "there was nothing to remove\n"
                    : std::to_string(result.before - result.after) + " less than before\n");
}

}  // namespace executorch::extension::command
