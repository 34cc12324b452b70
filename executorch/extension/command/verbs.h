#pragma once

#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/profiling.h>

#include <cstdint>
#include <optional>
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

/// A verb that is a Python module.
struct PythonVerb {
  std::string module;
  std::vector<std::string> arguments;
};
/// Replaces this process by Python (EXECUTORCH_PYTHON, or else `python3`) that runs the module.
/// Throws Failure if that cannot be started.
[[noreturn]] void run_python(const PythonVerb& verb);

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
/// Profiles the program that the command line names.
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

/// A language model, and how it chooses tokens: what `generate` and `chat` have in common.
struct TextOptions {
  std::string model_path;
  std::vector<std::string> data_files;
  /// Empty: use the tokenizer in the program.
  std::string tokenizer_path;
  std::string method = "forward";
  uint32_t n_threads = 0;
  /// -1: as many as there is room for.
  int64_t n_tokens = -1;
  float temperature = 0.8f, top_p = 1, min_p = 0;
  int32_t top_k = 0;
  float repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  /// TOKEN:BIAS.
  std::vector<std::string> token_bias;
  std::optional<uint64_t> seed;
  std::vector<std::string> stops;
  std::vector<uint64_t> stop_tokens;
  bool ignore_eos = false;
  /// At most one is set: a constraint on answers, as a regular expression or a file with a JSON
  /// schema.
  std::string regex, schema_file;
  std::string window = "stop";
  int32_t n_draft = 0;
  bool json = false;
};

struct GenerateVerb {
  TextOptions text;
  /// At most one is set; if neither is, the prompt is read from stdin.
  std::optional<std::string> prompt, prompt_file;
  /// Files, for a program that reads images or sound, too.
  std::vector<std::string> images, sounds;
  /// Beginning-of-text tokens; -1: one, if the program names that token.
  int32_t n_bos = -1;
  bool echo = false;
};
void generate(const GenerateVerb& verb);

struct ChatVerb {
  TextOptions text;
  /// A template's name, or a file with a Jinja text; empty: the model's.
  std::string chat_template;
  /// The JSON of an object; empty: no variables.
  std::string template_variables;
  std::string system;
};
void chat(const ChatVerb& verb);

struct ServeVerb {
  std::string model, data, tokenizer, chat_template, name, api_key;
  std::string method = "forward";
  std::string host = "127.0.0.1";
  int port = 8080;
  uint32_t n_threads = 0;
  uint32_t n_sessions = 4;
  uint32_t n_waiting = 64;
  uint32_t n_connections = 256;
  uint32_t body_kib = 4096;
  uint32_t timeout_seconds = 600;
  int64_t max_tokens = 0;
};
/// Returns after SIGINT or SIGTERM.
void serve(const ServeVerb& verb);

/// What a shell's completion needs of a verb: its options, with "--", and their descriptions.
struct VerbSummary {
  std::string name, what;
  std::vector<std::pair<std::string, std::string>> options;
};
/// `shell`: bash, zsh or fish.
void print_completions(const std::string& shell, const std::vector<VerbSummary>& verbs);

}  // namespace executorch::extension::command
