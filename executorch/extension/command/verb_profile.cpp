#include <executorch/extension/command/profiling.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>
#include <optional>

namespace executorch::extension::command {
namespace {

struct ProfileVerb {
  RunOptions run;
  ProfileOptions profile;
  std::string json_path, trace_path;
  bool instructions = false;
  bool json = false;
};

void profile(const ProfileVerb& verb) {
  const devtools::Profile profile = profile_choice(verb.run, verb.profile);
  write_profile(profile, verb.json_path, verb.trace_path);
  std::cout << (verb.json ? devtools::to_json(profile).dump(1) + "\n"
                          : devtools::to_text(profile, verb.instructions));
}

}  // namespace

devtools::Profile profile_choice(const RunOptions& run, ProfileOptions options) {
  use_threads(run.n_threads);
  options.fusion = !run.no_fusion;
  std::optional<Inputs> inputs;
  return profile_program(run.program, options, [&](runtime::Method& method) {
    if (!inputs.has_value()) inputs.emplace(method, run.inputs);
    return inputs->set(method);
  });
}

void add_profile_options(CLI::App& verb, ProfileOptions& options) {
  verb.add_option("--runs", options.n_runs, "Default: as many as take two seconds, 5 to 100");
  verb.add_option("--warm-up", options.n_warm_up, "Runs before those")->capture_default_str();
}

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileVerb>();
  CLI::App& verb =
      add_verb(app, "profile", "Show where a method's time goes, by operator and by module",
               "executorch profile model.pte --shape 1x8 --trace trace.json",
               [options] { profile(*options); });
  add_run_options(verb, options->run);
  add_profile_options(verb, options->profile);
  verb.add_flag("--instructions", options->instructions, "List every instruction, too");
  verb.add_flag("--overhead", options->profile.measure_overhead,
                "Measure what profiling costs, in turns with runs without it");
  verb.add_option("--output", options->json_path, "Write the profile as JSON to this file");
  verb.add_option("--trace", options->trace_path,
                  "Write one run for Perfetto or chrome://tracing to this file");
  verb.add_flag("--json", options->json, "Print JSON instead of text");
}

}  // namespace executorch::extension::command
