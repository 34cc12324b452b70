#include <executorch/devtools/inspect/describe.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

namespace {

using executorch::devtools::Json;

void log_plainly(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t,
                 const char* message, size_t) {
  std::fprintf(stderr, "%s\n", message);
}

int inspect(const std::string& model, const std::string& data, bool json) {
  Json out = executorch::devtools::describe_file(model);
  if (data.empty()) {
    std::cout << (json ? out.dump(2) + "\n" : executorch::devtools::to_text(out));
    return 0;
  }
  const Json external = executorch::devtools::describe_file(data);
  if (out["kind"] != "program" || external["kind"] != "data") {
    throw executorch::devtools::InspectError{"--data needs a program and a data file, found a " +
                                             out["kind"].get<std::string>() + " and a " +
                                             external["kind"].get<std::string>()};
  }
  const auto missing = executorch::devtools::missing_external_data(out, external);
  if (json) {
    std::cout << Json{{"program", out}, {"data", external}, {"missing", missing}}.dump(2) << "\n";
  } else {
    std::cout << executorch::devtools::to_text(out) << "\n"
              << executorch::devtools::to_text(external);
  }
  for (const std::string& line : missing) {
    std::cerr << "executorch_inspect: not in " << data << ": " << line << "\n";
  }
  return missing.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(log_plainly, "executorch_inspect"));
  executorch::runtime::runtime_init();
  CLI::App app("Verifies a program (.pte) or data file (.ptd) and prints what is in it.");
  app.footer("Example: executorch_inspect model.pte --data weights.ptd --json");
  std::string model;
  std::string data;
  bool json = false;
  app.add_option("file", model, "A .pte or .ptd file")->required();
  app.add_option("--data", data, "A .ptd file with the program's external tensors");
  app.add_flag("--json", json, "Print JSON instead of text");
  CLI11_PARSE(app, argc, argv);
  try {
    return inspect(model, data, json);
  } catch (const executorch::devtools::InspectError& error) {
    std::cerr << "executorch_inspect: " << error.message << "\n";
  } catch (const std::exception& error) {
    std::cerr << "executorch_inspect: " << model << ": " << error.what() << "\n";
  }
  return 1;
}
