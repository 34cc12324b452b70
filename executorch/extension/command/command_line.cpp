// The one file of the command that sees CLI11, whose header takes longer to compile than all verbs.

#include <executorch/extension/command/command_line.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/extension/command/verbs.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <limits>

namespace executorch::extension::command {
namespace {

constexpr char kUsage[] =
    "Looks into ExecuTorch programs (.pte), runs and measures them.\n"
    "Exit code: 0 done, 1 something failed (the cause is on stderr), 2 wrong command line.";

/// A subcommand that fills a `Verb` and hands it to `action`.
template <typename Verb, typename Action>
std::pair<CLI::App&, Verb&> add_verb(CLI::App& app, const std::string& name,
                                     const std::string& what, const std::string& example,
                                     Action action) {
  auto options = std::make_shared<Verb>();
  CLI::App* const verb = app.add_subcommand(name, what);
  verb->footer("Example: " + example);
  verb->fallthrough();  // the command's own options may also stand behind the verb
  verb->final_callback([options, action] { action(*options); });
  return {*verb, *options};
}

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "Print JSON instead of text");
}

/// Rejects what CLI11 would silently read as the largest number, "-1" and numbers that are too
/// large, and says what is expected.
template <typename T>
std::string expect_unsigned(const std::string& text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && parsed == end) return "";
  return "'" + text + "' is no integer from 0 to " + std::to_string(std::numeric_limits<T>::max());
}

std::string expect_something(const std::string& text) {
  return text.empty() ? "it is empty" : "";
}

/// An option that names a file, or several, or a method. An empty name, as of a variable of the
/// shell that is not set, is an error: it must not be taken for the default.
template <typename T>
CLI::Option* add_name(CLI::App& verb, const std::string& option, T& name, const std::string& what) {
  return verb.add_option(option, name, what)->check(expect_something);
}

void add_model(CLI::App& verb, std::string& path,
               const std::string& what = "Program, a .pte file") {
  add_name(verb, "model", path, what)->required();
}

void add_threads(CLI::App& verb, uint32_t& n_threads) {
  verb.add_option("--threads", n_threads, "Default: one for each performant core")
      ->check(expect_unsigned<uint32_t>);
}

void add_inspect(CLI::App& app) {
  auto [verb, options] =
      add_verb<InspectVerb>(app, "inspect", "Verify a program or data file and print what is in it",
                            "executorch inspect model.pte --data weights.ptd --json", inspect);
  add_name(verb, "file", options.file, "A .pte or .ptd file")->required();
  add_name(verb, "--data", options.data, "A .ptd file with the program's external tensors");
  add_json(verb, options.json);
}

void add_run_options(CLI::App& verb, RunOptions& options) {
  add_model(verb, options.program.model_path);
  add_name(verb, "--data", options.program.data_path, "External data of the program, a .ptd file");
  add_name(verb, "--method", options.program.method, "Default: the first");
  add_name(verb, "--inputs", options.inputs.files,
           "A .npy or raw file for each tensor input, comma-separated; also as tokens=FILE, by the "
           "input's name (inspect)")
      ->allow_extra_args(false)  // which would be taken from the positional ones
      ->delimiter(',');
  verb.add_option("--shape", options.inputs.shapes,
                  "Size of each tensor input, as 1x8,- (-: the largest), or by name, as tokens=1x8")
      ->allow_extra_args(false)
      ->delimiter(',');
  verb.add_option("--fill", options.inputs.fill, "Inputs without files: ones or random")
      ->check(CLI::IsMember({"ones", "random"}))
      ->capture_default_str();
  verb.add_option("--seed", options.inputs.seed, "Of random inputs")
      ->check(expect_unsigned<uint64_t>)
      ->capture_default_str();
  add_threads(verb, options.n_threads);
  verb.add_flag("--no-fusion", options.no_fusion,
                "Run the instructions one by one, as in the file");
}

void add_run(CLI::App& app) {
  auto [verb, options] =
      add_verb<RunVerb>(app, "run", "Run a method and print what comes out",
                        "executorch run model.pte --inputs x.npy --output y", run);
  add_run_options(verb, options.run);
  verb.add_option("--runs", options.n_runs, "How often")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  add_name(verb, "-o,--output", options.output, "Write tensor output i to OUTPUT-i.npy");
  verb.add_flag("--all", options.all, "Print every element");
  verb.add_flag("--json", options.json, "Print one JSON object instead of text");
}

void add_profile_options(CLI::App& verb, ProfileOptions& options) {
  verb.add_option("--runs", options.n_runs, "Default: as many as take two seconds, 5 to 100")
      ->check(expect_unsigned<uint32_t>);
  verb.add_option("--warm-up", options.n_warm_up, "Runs before those, at least one")
      ->check(expect_unsigned<uint32_t>)
      ->capture_default_str();
}

void add_profile(CLI::App& app) {
  auto [verb, options] = add_verb<ProfileVerb>(
      app, "profile", "Show where a method's time goes, by operator and by module",
      "executorch profile model.pte --shape 1x8 --trace trace.json", profile);
  add_run_options(verb, options.run);
  add_profile_options(verb, options.profile);
  verb.add_flag("--instructions", options.instructions, "List every instruction, too");
  verb.add_flag("--overhead", options.profile.measure_overhead,
                "Measure what profiling costs, in turns with runs without it");
  add_name(verb, "-o,--output", options.json_path, "Write the profile as JSON to this file");
  add_name(verb, "--trace", options.trace_path,
           "Write one run for Perfetto or chrome://tracing to this file");
  add_json(verb, options.json);
}

void add_report(CLI::App& app) {
  auto [verb, options] = add_verb<ReportVerb>(
      app, "report", "Write a profile, the graph and the memory plan as one HTML page",
      "executorch report model.pte --output model.html", report);
  add_run_options(verb, options.run);
  add_profile_options(verb, options.profile);
  add_name(verb, "-o,--output", options.output, "Default: the program's name with .html");
}

void add_memory(CLI::App& app) {
  auto [verb, options] = add_verb<MemoryVerb>(
      app, "memory", "Show the plan of a method's memory: peak, lifetimes, what could be saved",
      "executorch memory model.pte --svg plan.svg", memory);
  add_model(verb, options.model);
  add_name(verb, "--method", options.method, "Default: the first");
  add_name(verb, "--svg", options.svg,
           "Draw the first arena to this file, others to FILE-<arena>.svg");
  add_json(verb, options.json);
}

void add_diff(CLI::App& app) {
  auto [verb, options] = add_verb<DiffVerb>(
      app, "diff", "Compare two programs: structure, operators, weights, sizes, memory plan",
      "executorch diff before.pte after.pte\nExit code: 0 equal, 1 different or failed.",
      [](const DiffVerb& given) {
        if (!diff(given)) throw CLI::RuntimeError(1);
      });
  add_name(verb, "a", options.a, "A .pte file")->required();
  add_name(verb, "b", options.b, "Another")->required();
  add_json(verb, options.json);
}

void add_strip(CLI::App& app) {
  auto [verb, options] = add_verb<StripVerb>(
      app, "strip", "Remove the names of the Python code from a program; nothing else changes",
      "executorch strip model.pte --output small.pte", strip);
  add_model(verb, options.model);
  add_name(verb, "-o,--output", options.output, "Default: replace the program");
  add_json(verb, options.json);
}

void add_sampling_options(CLI::App& verb, TextOptions& options) {
  verb.add_option("--temperature", options.temperature,
                  "Divide logits by this; 0: always take the likeliest token")
      ->capture_default_str();
  verb.add_option("--top-k", options.top_k,
                  "Choose from this many of the likeliest tokens; 0: from all")
      ->capture_default_str();
  verb.add_option("--top-p", options.top_p,
                  "Choose from the fewest likeliest tokens whose probabilities add up to this")
      ->capture_default_str();
  verb.add_option("--min-p", options.min_p,
                  "Leave out tokens less likely than this times the likeliest one")
      ->capture_default_str();
  verb.add_option("--repetition-penalty", options.repetition_penalty,
                  "Make tokens of the text less likely: divide their logits by this if positive, "
                  "else multiply")
      ->capture_default_str();
  verb.add_option("--presence-penalty", options.presence_penalty,
                  "Subtract this from the logits of tokens that were chosen before")
      ->capture_default_str();
  verb.add_option("--frequency-penalty", options.frequency_penalty,
                  "Subtract this from a token's logit for each time that it was chosen")
      ->capture_default_str();
  verb.add_option("--bias", options.token_bias,
                  "TOKEN:NUMBER, added to the logit of a token id; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--seed", options.seed,
                  "Seed of the random choice. Default: another one each time")
      ->check(expect_unsigned<uint64_t>);
}

void add_text_options(CLI::App& verb, TextOptions& options) {
  add_model(verb, options.model_path, "Program of a language model, a .pte file");
  add_name(verb, "--tokenizer", options.tokenizer_path,
           "tokenizer.json, tokenizer.model, vocab.json, a tiktoken file or another. Default: "
           "the one inside of the program");
  add_name(verb, "--data", options.data_files,
           "External data of the program, a .ptd file; may be repeated")
      ->allow_extra_args(false);
  add_name(verb, "--method", options.method, "The method that gives logits")->capture_default_str();
  verb.add_option("--tokens", options.n_tokens,
                  "Most tokens to generate; -1: as many as the context has room for")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 40))
      ->capture_default_str();
  add_sampling_options(verb, options);
  verb.add_option("--stop", options.stops,
                  "A text that ends the answer and is not part of it; may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--stop-token", options.stop_tokens,
                  "The id of a token that ends the answer; may be repeated")
      ->allow_extra_args(false)
      ->check(expect_unsigned<uint64_t>);
  verb.add_flag("--ignore-eos", options.ignore_eos, "Go on after a token that ends the text");
  CLI::Option* const regex = verb.add_option("--regex", options.regex,
                                             "Generate a text that this regular expression matches")
                                 ->check(expect_something);
  verb.add_option("--json-schema", options.schema_file,
                  "Generate a JSON value that the schema in this file allows")
      ->check(expect_something)
      ->excludes(regex);
  verb.add_option(
          "--window", options.window,
          "What to do when the text outgrows the context: stop; exact: drop the first token for "
          "each new one, and compute the rest again each time; half: drop the first half")
      ->check(CLI::IsMember({"stop", "exact", "half"}))
      ->capture_default_str();
  verb.add_option("--draft", options.n_draft,
                  "Draft this many tokens by prompt lookup and verify them in one run; only for "
                  "programs that return the logits of all positions")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  add_threads(verb, options.n_threads);
}

void add_generate(CLI::App& app) {
  auto [verb, options] = add_verb<GenerateVerb>(
      app, "generate", "Continue a text with a language model",
      "executorch generate model.pte --tokenizer tokenizer.json --prompt 'Once upon' --tokens 50",
      generate);
  add_text_options(verb, options.text);
  CLI::Option* const prompt =
      verb.add_option("--prompt", options.prompt, "The text to continue. Default: read from stdin");
  add_name(verb, "--prompt-file", options.prompt_file, "A file with the text; -: stdin")
      ->excludes(prompt);
  verb.add_option("--bos", options.n_bos,
                  "Put this many beginning-of-text tokens in front. Default: one, if the program "
                  "names that token")
      ->check(CLI::Range(0, 127));
  CLI::Option* const image =
      add_name(verb, "--image", options.images,
               "An image for the next <image> in the prompt, or, if there is none, in front of "
               "the prompt: .ppm, .pgm, or .npy with bytes or "
               "floats [channels, height, width]; may be repeated")
          ->allow_extra_args(false);
  CLI::Option* const sound =
      add_name(verb, "--audio", options.sounds,
               "Sound for the next <audio> in the prompt: .wav, or .npy with a spectrogram, floats "
               "[bins, frames]; may be repeated")
          ->allow_extra_args(false);
  for (const char* name : {"--method", "--top-k", "--top-p", "--min-p", "--repetition-penalty",
                           "--presence-penalty", "--frequency-penalty", "--bias", "--seed",
                           "--stop", "--stop-token", "--window", "--draft"}) {
    image->excludes(verb.get_option(name));
    sound->excludes(verb.get_option(name));
  }
  verb.add_flag("--echo", options.echo, "Print the prompt, too");
  verb.add_flag("--json", options.text.json, "Print one JSON object with text and rates instead");
}

void add_chat(CLI::App& app) {
  auto [verb, options] =
      add_verb<ChatVerb>(app, "chat", "Talk to a language model: a question on each line",
                         "executorch chat model.pte --tokenizer tokenizer.json --template chatml\n"
                         "Lines: /reset forgets what was said, /quit ends. Ctrl-C ends an answer.",
                         chat);
  add_text_options(verb, options.text);
  add_name(verb, "--template", options.chat_template,
           "How a conversation is written: chatml, llama2, llama3, gemma, phi, mistral, plain, "
           "or a file with a Jinja template. Default: what the model comes with");
  verb.add_option("--chat-template-kwargs", options.template_variables,
                  "Variables for the template, as JSON: '{\"enable_thinking\": false}'");
  verb.add_option("--system", options.system, "The system message");
  verb.add_flag("--json", options.text.json, "Print one JSON object for each answer instead");
}

void add_serve(CLI::App& app) {
  auto [verb, options] = add_verb<ServeVerb>(
      app, "serve", "Serve a language model over HTTP, in the protocol of chat completions",
      "executorch serve model.pte --tokenizer tokenizer.json --port 8080", serve);
  add_model(verb, options.model);
  add_name(verb, "--data", options.data, "External data of the program, a .ptd file");
  add_name(verb, "--tokenizer", options.tokenizer, "Default: the one inside the program");
  add_name(verb, "--template", options.chat_template,
           "Chat template, as in executorch chat; default: the model's own, else plain");
  add_name(verb, "--method", options.method, "The method that gives logits")->capture_default_str();
  verb.add_option("--name", options.name, "What clients call the model; default: the file's name");
  add_name(verb, "--host", options.host,
           "Address to listen on; 0.0.0.0 accepts other machines, too")
      ->capture_default_str();
  verb.add_option("--port", options.port, "Port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb.add_option("--api-key", options.api_key,
                  "Bearer token that requests need; default: EXECUTORCH_API_KEY, else none");
  verb.add_option("--sessions", options.n_sessions, "Conversations that run at the same time")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str();
  verb.add_option("--waiting", options.n_waiting,
                  "Requests that may wait for a conversation; more are refused")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  verb.add_option("--connections", options.n_connections, "Connections at the same time")
      ->check(CLI::Range(1u, 16384u))
      ->capture_default_str();
  verb.add_option("--max-body", options.body_kib, "Largest request, in KiB")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  verb.add_option("--max-tokens", options.max_tokens,
                  "Most tokens of an answer; 0: as many as the context has room for")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  verb.add_option("--timeout", options.timeout_seconds,
                  "Seconds that a request may take, waiting included")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  add_threads(verb, options.n_threads);
}

/// A verb that a Python module implements, with its own options and help.
void add_python_verb(CLI::App& app, const std::string& name, const std::string& what,
                     const std::string& module) {
  CLI::App* const verb = app.add_subcommand(name, what);
  verb->set_help_flag();
  verb->prefix_command();
  verb->final_callback([verb, module] { run_python({module, verb->remaining()}); });
}

void add_export(CLI::App& app) {
  add_python_verb(app, "export", "Make a program of a PyTorch model (in Python)",
                  "executorch.export");
}

void add_parity(CLI::App& app) {
  add_python_verb(app, "parity", "Compare a program with its PyTorch model (in Python)",
                  "executorch.devtools.parity");
}

std::vector<VerbSummary> summaries(CLI::App& app) {
  std::vector<VerbSummary> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back({verb->get_name(), verb->get_description(), {}});
    for (const CLI::Option* option : verb->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        verbs.back().options.emplace_back("--" + name, option->get_description());
      }
    }
  }
  return verbs;
}

void add_completions(CLI::App& app) {
  auto [verb, shell] = add_verb<std::string>(
      app, "completions", "Print what lets a shell complete this command",
      "source <(executorch completions bash)",
      [&app](const std::string& chosen) { print_completions(chosen, summaries(app)); });
  verb.add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

/// Says which option there is not, and what is close to it. False: there are all of them.
bool explain_unknown_option(const CLI::App& app, const std::vector<VerbSummary>& verbs) {
  const auto given = app.get_subcommands();
  std::string whose = given.empty() ? "executorch" : given[0]->get_name();
  std::vector<std::string> known;
  for (const VerbSummary& summary : verbs) {
    if (summary.name != whose) continue;
    for (const auto& [name, what] : summary.options) known.push_back(name);
  }
  if (given.empty()) known = {"--help", "--version"};
  known.push_back("--verbose");
  for (const std::string& extra : app.remaining(true)) {
    const std::string name = extra.substr(0, extra.find('='));
    if (!name.starts_with("-") || name == "--") continue;
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    std::cerr << "executorch: "
              << (is_known ? "'" + name + "' belongs behind " + whose
                           : "no option '" + name + "' of " + whose + suggestion(name, known))
              << "\n";
    return true;
  }
  return false;
}

}  // namespace

int run_command_line(int argc, char** argv, bool& verbose) {
  CLI::App app(kUsage, "executorch");
  app.footer(
      "Example: executorch profile model.pte\n"
      "Every verb has --help with an example.");
  app.require_subcommand(1);
  app.set_version_flag("--version", "executorch " EXECUTORCH_VERSION, "Print the version and exit");
  app.add_flag("--verbose", verbose, "Show what the runtime logs while it works");
  for (auto add :
       {add_export, add_parity, add_inspect, add_run, add_profile, add_report, add_memory, add_diff,
        add_strip, add_generate, add_chat, add_serve, add_completions}) {
    add(app);
  }
  if (argc < 2) {
    std::cout << app.help();
    return 2;
  }
  const auto verbs = summaries(app);
  const std::string first = argv[1];
  std::vector<std::string> names;
  for (const VerbSummary& verb : verbs) names.push_back(verb.name);
  if (first[0] != '-' && std::find(names.begin(), names.end(), first) == names.end()) {
    std::cerr << "executorch: no verb '" << first << "'" << suggestion(first, names) << "\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    const bool is_error = error.get_exit_code() != 0;  // else it asks for help
    if (is_error && explain_unknown_option(app, verbs)) return 2;
    return app.exit(error) == 0 ? 0 : 2;
  }
}

}  // namespace executorch::extension::command
