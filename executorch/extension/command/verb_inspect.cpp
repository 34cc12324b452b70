#include <executorch/devtools/inspect/describe.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {
namespace {

struct InspectOptions {
  std::string file;
  std::string data;
  bool json = false;
};

void inspect(const InspectOptions& options) {
  devtools::Json out = devtools::describe_file(options.file);
  if (options.data.empty()) {
    std::cout << (options.json ? out.dump(2) + "\n" : devtools::to_text(out));
    return;
  }
  const devtools::Json data = devtools::describe_file(options.data);
  if (out["kind"] != "program" || data["kind"] != "data") {
    fail("--data needs a program and a data file, found a " + out["kind"].get<std::string>() +
         " and a " + data["kind"].get<std::string>());
  }
  const auto missing = devtools::missing_external_data(out, data);
  if (options.json) {
    std::cout << devtools::Json{{"program", out}, {"data", data}, {"missing", missing}}.dump(2)
              << "\n";
  } else {
    std::cout << devtools::to_text(out) << "\n" << devtools::to_text(data);
  }
  if (missing.empty()) return;
  std::string cause = std::to_string(missing.size()) + " tensors are not in " + options.data;
  for (const std::string& line : missing) cause += "\n  " + line;
  fail(cause);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App& verb = add_verb(app, "inspect", "Verify a program or data file and print what is in it",
                            "executorch inspect model.pte --data weights.ptd --json",
                            [options] { inspect(*options); });
  verb.add_option("file", options->file, "A .pte or .ptd file")->required();
  verb.add_option("--data", options->data, "A .ptd file with the program's external tensors");
  verb.add_flag("--json", options->json, "Print JSON instead of text");
}

CLI::App& add_verb(CLI::App& app, const std::string& name, const std::string& what,
                   const std::string& example, std::function<void()> action) {
  CLI::App* const verb = app.add_subcommand(name, what);
  verb->footer("Example: " + example);
  verb->final_callback(std::move(action));
  return *verb;
}

}  // namespace executorch::extension::command
