#include <executorch/devtools/inspect/diff.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {
namespace {

struct DiffVerb {
  std::string a, b;
  bool json = false;
};

void diff(const DiffVerb& verb) {
  const devtools::Json diff = devtools::diff_programs(verb.a, verb.b);
  std::cout << (verb.json ? diff.dump(1) + "\n" : devtools::diff_text(diff));
  if (!diff["equal"].get<bool>()) throw CLI::RuntimeError(1);
}

struct StripVerb {
  std::string model, output;
  bool json = false;
};

void strip(const StripVerb& verb) {
  const std::string& output = verb.output.empty() ? verb.model : verb.output;
  const devtools::StripResult result = devtools::strip_program(verb.model, output);
  if (verb.json) {
    std::cout << ordered_json{{"output", output}, {"bytes", {result.before, result.after}}}.dump()
              << "\n";
    return;
  }
  std::cout << output << ": " << result.after << " bytes, "
            << (result.before == result.after
                    ? "there was nothing to remove\n"
                    : std::to_string(result.before - result.after) + " less than before\n");
}

}  // namespace

void add_diff(CLI::App& app) {
  auto options = std::make_shared<DiffVerb>();
  CLI::App& verb = add_verb(
      app, "diff", "Compare two programs: structure, operators, weights, sizes, memory plan",
      "executorch diff before.pte after.pte\nExit code: 0 equal, 1 different or failed.",
      [options] { diff(*options); });
  verb.add_option("a", options->a, "A .pte file")->required();
  verb.add_option("b", options->b, "Another")->required();
  verb.add_flag("--json", options->json, "Print JSON instead of text");
}

void add_strip(CLI::App& app) {
  auto options = std::make_shared<StripVerb>();
  CLI::App& verb = add_verb(
      app, "strip", "Remove what names the Python code from a program; nothing else changes",
      "executorch strip model.pte --output small.pte", [options] { strip(*options); });
  verb.add_option("model", options->model, "Program, a .pte file")->required();
  verb.add_option("--output", options->output, "Default: replace the program");
  verb.add_flag("--json", options->json, "Print JSON instead of text");
}

}  // namespace executorch::extension::command
