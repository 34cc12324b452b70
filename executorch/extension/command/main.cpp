// The `executorch` command: looks into programs, runs and measures them.

#include <executorch/devtools/inspect/describe.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/extension/command/verbs.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdio>
#include <iostream>

namespace executorch::extension::command {
namespace {

constexpr char kUsage[] =
    "Looks into ExecuTorch programs (.pte), runs and measures them.\n"
    "Exit code: 0 done, 1 something failed (the cause is on stderr), 2 wrong command line.";

bool verbose = false;

void log_plainly(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
                 const char* message, size_t) {
  if (verbose || level == et_pal_log_level_t::kError || level == et_pal_log_level_t::kFatal) {
    std::fprintf(stderr, "%s\n", message);
  }
}

std::vector<std::string> verb_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Parses; a misspelled verb or option is answered with what is close to it. 0: go on.
int parse(CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    std::cout << app.help();
    return 2;
  }
  const std::string first = argv[1];
  const auto verbs = verb_names(app);
  if (first[0] != '-' && std::find(verbs.begin(), verbs.end(), first) == verbs.end()) {
    std::cerr << "executorch: no verb '" << first << "'" << suggestion(first, verbs) << "\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ExtrasError& error) {
    const auto given = app.get_subcommands();
    const CLI::App& verb = given.empty() ? app : *given[0];
    for (const std::string& extra : app.remaining(true)) {
      const std::string name = extra.substr(0, extra.find('='));
      if (name.starts_with("--")) {
        std::cerr << "executorch: no option '" << name << "' of " << verb.get_name()
                  << suggestion(name, option_names(verb)) << "\n";
        return 2;
      }
    }
    return app.exit(error), 2;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? -1 : 2;
  }
}

int run(int argc, char** argv) {
  runtime::register_pal(runtime::PalImpl::create(log_plainly, "executorch"));
  runtime::runtime_init();
  CLI::App app(kUsage, "executorch");
  app.footer(
      "Example: executorch profile model.pte\n"
      "Every verb has --help with an example.");
  app.require_subcommand(1);
  app.add_flag("--verbose", verbose, "Show what the runtime logs while it works");
  add_inspect(app);
  add_run(app);
  add_profile(app);
  add_report(app);
  add_memory(app);
  add_diff(app);
  add_strip(app);
  add_completions(app);
  std::string cause;
  try {
    const int code = parse(app, argc, argv);
    return code < 0 ? 0 : code;
  } catch (const Failure& failure) {
    cause = failure.cause;
  } catch (const devtools::InspectError& error) {
    cause = error.message;
  } catch (const std::exception& error) {
    cause = error.what();
  }
  std::cerr << "executorch: " << cause << std::endl;
  return 1;
}

}  // namespace
}  // namespace executorch::extension::command

int main(int argc, char** argv) {
  return executorch::extension::command::run(argc, argv);
}
