// The one file of the command that sees CLI11, whose header takes longer to compile than all verbs.

#include <executorch/extension/command/command_line.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/extension/command/verbs.h>

#include <CLI/CLI.hpp>
#include <iostream>

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
  verb->final_callback([options, action] { action(*options); });
  return {*verb, *options};
}

void add_json(CLI::App& verb, bool& json) {
  verb.add_flag("--json", json, "Print JSON instead of text");
}

void add_inspect(CLI::App& app) {
  auto [verb, options] =
      add_verb<InspectVerb>(app, "inspect", "Verify a program or data file and print what is in it",
                            "executorch inspect model.pte --data weights.ptd --json", inspect);
  verb.add_option("file", options.file, "A .pte or .ptd file")->required();
  verb.add_option("--data", options.data, "A .ptd file with the program's external tensors");
  add_json(verb, options.json);
}

void add_run_options(CLI::App& verb, RunOptions& options) {
  verb.add_option("model", options.program.model_path, "Program, a .pte file")->required();
  verb.add_option("--data", options.program.data_path, "External data of the program, a .ptd file");
  verb.add_option("--method", options.program.method, "Default: the first");
  verb.add_option("--inputs", options.inputs.files,
                  "A .npy or raw file for each tensor input, comma-separated")
      ->delimiter(',');
  verb.add_option("--shape", options.inputs.shapes,
                  "Size of each tensor input, as 1x8,- (-: the largest)")
      ->delimiter(',');
  verb.add_option("--fill", options.inputs.fill, "Inputs without files: ones or random")
      ->check(CLI::IsMember({"ones", "random"}))
      ->capture_default_str();
  verb.add_option("--seed", options.inputs.seed, "Of random inputs")->capture_default_str();
  verb.add_option("--threads", options.n_threads, "Default: one for each performant core");
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
  verb.add_option("--output", options.output, "Write tensor output i to OUTPUT-i.npy");
  verb.add_flag("--all", options.all, "Print every element");
  verb.add_flag("--json", options.json, "Print one JSON object instead of text");
}

void add_profile_options(CLI::App& verb, ProfileOptions& options) {
  verb.add_option("--runs", options.n_runs, "Default: as many as take two seconds, 5 to 100");
  verb.add_option("--warm-up", options.n_warm_up, "Runs before those")->capture_default_str();
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
  verb.add_option("--output", options.json_path, "Write the profile as JSON to this file");
  verb.add_option("--trace", options.trace_path,
                  "Write one run for Perfetto or chrome://tracing to this file");
  add_json(verb, options.json);
}

void add_report(CLI::App& app) {
  auto [verb, options] = add_verb<ReportVerb>(
      app, "report", "Write a profile, the graph and the memory plan as one HTML page",
      "executorch report model.pte --output model.html", report);
  add_run_options(verb, options.run);
  add_profile_options(verb, options.profile);
  verb.add_option("--output", options.output, "Default: the program's name with .html");
}

void add_memory(CLI::App& app) {
  auto [verb, options] = add_verb<MemoryVerb>(
      app, "memory", "Show the plan of a method's memory: peak, lifetimes, what could be saved",
      "executorch memory model.pte --svg plan.svg", memory);
  verb.add_option("model", options.model, "Program, a .pte file")->required();
  verb.add_option("--method", options.method, "Default: the first");
  verb.add_option("--svg", options.svg,
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
  verb.add_option("a", options.a, "A .pte file")->required();
  verb.add_option("b", options.b, "Another")->required();
  add_json(verb, options.json);
}

void add_strip(CLI::App& app) {
  auto [verb, options] = add_verb<StripVerb>(
      app, "strip", "Remove what names the Python code from a program; nothing else changes",
      "executorch strip model.pte --output small.pte", strip);
  verb.add_option("model", options.model, "Program, a .pte file")->required();
  verb.add_option("--output", options.output, "Default: replace the program");
  add_json(verb, options.json);
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

/// Says which option the verb does not have, and what is close to it. False: it has all of them.
bool explain_unknown_option(const CLI::App& app, const std::vector<VerbSummary>& verbs) {
  const auto given = app.get_subcommands();
  if (given.empty()) return false;
  const std::string verb = given[0]->get_name();
  std::vector<std::string> known;
  for (const VerbSummary& summary : verbs) {
    if (summary.name != verb) continue;
    for (const auto& [name, what] : summary.options) known.push_back(name);
  }
  for (const std::string& extra : app.remaining(true)) {
    const std::string name = extra.substr(0, extra.find('='));
    if (!name.starts_with("--")) continue;
    std::cerr << "executorch: no option '" << name << "' of " << verb << suggestion(name, known)
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
  app.add_flag("--verbose", verbose, "Show what the runtime logs while it works");
  for (auto add : {add_inspect, add_run, add_profile, add_report, add_memory, add_diff, add_strip,
                   add_completions}) {
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
  } catch (const CLI::ExtrasError& error) {
    return explain_unknown_option(app, verbs) ? 2 : (app.exit(error), 2);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
}

}  // namespace executorch::extension::command
