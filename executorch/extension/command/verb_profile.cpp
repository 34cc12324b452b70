#include <executorch/extension/command/outputs.h>
#include <executorch/extension/command/profiling.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>
#include <optional>

namespace executorch::extension::command {

void profile(const ProfileVerb& verb) {
  const ProgramChoice& program = verb.run.program;
  check_output_paths({verb.json_path, verb.trace_path}, {program.model_path, program.data_path});
  const devtools::Profile profile = profile_choice(verb.run, verb.profile);
  write_profile(profile, verb.json_path, verb.trace_path);
  std::cout << (verb.json ? devtools::json_text(devtools::to_json(profile), 1) + "\n"
                          : devtools::to_text(profile, verb.instructions));
}

devtools::Profile profile_choice(const RunOptions& run, ProfileOptions options) {
  use_threads(run.n_threads);
  options.fusion = !run.no_fusion;
  std::optional<Inputs> inputs;
  return profile_program(run.program, options, [&](runtime::Method& method) {
    if (!inputs.has_value()) inputs.emplace(method, run.inputs);
    return inputs->set(method);
  });
}

}  // namespace executorch::extension::command
