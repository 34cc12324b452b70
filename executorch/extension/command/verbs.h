#pragma once

#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/profiling.h>
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>

/// The verbs of the command. Each adds its subcommand to the app; options live as long as the app.
/// A verb that fails throws Failure or devtools::InspectError.
namespace executorch::extension::command {

using nlohmann::ordered_json;

void add_inspect(CLI::App& app);
void add_run(CLI::App& app);
void add_profile(CLI::App& app);
void add_report(CLI::App& app);
void add_memory(CLI::App& app);
void add_diff(CLI::App& app);
void add_strip(CLI::App& app);
void add_completions(CLI::App& app);

/// What verbs that run a method have in common.
struct RunOptions {
  ProgramChoice program;
  InputOptions inputs;
  uint32_t n_threads = 0;
  bool no_fusion = false;
};
void add_run_options(CLI::App& verb, RunOptions& options);

/// A profile of what the command line chose.
devtools::Profile profile_choice(const RunOptions& run, ProfileOptions options);
void add_profile_options(CLI::App& verb, ProfileOptions& options);

/// `verb` with its help's last line; `action` runs when the verb was given.
CLI::App& add_verb(CLI::App& app, const std::string& name, const std::string& what,
                   const std::string& example, std::function<void()> action);

}  // namespace executorch::extension::command
