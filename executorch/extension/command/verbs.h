#pragma once

#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/profiling.h>

#include <string>
#include <utility>
#include <vector>

/// The verbs of the command: what each takes from the command line, and what it does, printing to
/// stdout. A verb that fails throws Failure or devtools::InspectError.
namespace executorch::extension::command {

/// What verbs that run a method have in common.
struct RunOptions {
  ProgramChoice program;
  InputOptions inputs;
  uint32_t n_threads = 0;
  bool no_fusion = false;
};

struct InspectVerb {
  std::string file, data;
  bool json = false;
};
void inspect(const InspectVerb& verb);

struct RunVerb {
  RunOptions run;
  uint32_t n_runs = 1;
  std::string output;
  bool all = false;
  bool json = false;
};
void run(const RunVerb& verb);

struct ProfileVerb {
  RunOptions run;
  ProfileOptions profile;
  std::string json_path, trace_path;
  bool instructions = false;
  bool json = false;
};
void profile(const ProfileVerb& verb);
/// A profile of what the command line chose.
devtools::Profile profile_choice(const RunOptions& run, ProfileOptions options);

struct ReportVerb {
  RunOptions run;
  ProfileOptions profile;
  std::string output;
};
void report(const ReportVerb& verb);

struct MemoryVerb {
  std::string model, method, svg;
  bool json = false;
};
void memory(const MemoryVerb& verb);

struct DiffVerb {
  std::string a, b;
  bool json = false;
};
/// Returns whether the two are equal.
bool diff(const DiffVerb& verb);

struct StripVerb {
  std::string model, output;
  bool json = false;
};
void strip(const StripVerb& verb);

/// A verb as a shell completes it: options with their "--" and descriptions.
struct VerbSummary {
  std::string name, what;
  std::vector<std::pair<std::string, std::string>> options;
};
/// `shell`: bash, zsh or fish.
void print_completions(const std::string& shell, const std::vector<VerbSummary>& verbs);

}  // namespace executorch::extension::command
