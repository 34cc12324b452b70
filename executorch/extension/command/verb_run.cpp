#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/inspect/table.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/npy.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/command/progress.h>
#include <executorch/extension/command/verbs.h>
#include <executorch/kernels/optimized/fusion.h>

#include <chrono>
#include <iostream>

namespace executorch::extension::command {
namespace {

struct RunVerb {
  RunOptions run;
  uint32_t n_runs = 1;
  std::string output;
  bool all = false;
  bool json = false;
};

double run_once(runtime::Method& method, const Inputs& inputs, const std::string& name) {
  const auto held = inputs.set(method);
  const auto start = std::chrono::steady_clock::now();
  check(method.execute(), "execute method '" + name + "'");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void run(const RunVerb& verb) {
  use_threads(verb.run.n_threads);
  optimized::set_fusion_enabled(!verb.run.no_fusion);
  LoadedProgram program(verb.run.program);
  runtime::Method& method = program.load_chosen_method();
  const Inputs inputs(method, verb.run.inputs);
  std::vector<double> seconds;
  {
    Progress progress("run");
    for (uint32_t i = 0; i < verb.n_runs; ++i) {
      seconds.push_back(run_once(method, inputs, program.method_name()));
      progress.show(static_cast<double>(i + 1) / verb.n_runs);
    }
  }
  for (size_t i = 0; !verb.output.empty() && i < method.outputs_size(); ++i) {
    if (!method.get_output(i).isTensor()) continue;
    devtools::write_file(verb.output + "-" + std::to_string(i) + ".npy",
                         write_npy(method.get_output(i).toTensor()));
  }
  if (verb.json) {
    ordered_json out = {{"program", verb.run.program.model_path},
                        {"method", program.method_name()},
                        {"seconds", seconds},
                        {"outputs", ordered_json::array()}};
    for (size_t i = 0; i < method.outputs_size(); ++i) {
      out["outputs"].push_back(output_json(method.get_output(i), verb.all));
    }
    std::cout << out.dump() << "\n";
    return;
  }
  print_outputs(std::cout, method, verb.all);
  std::sort(seconds.begin(), seconds.end());
  std::cout << devtools::format_seconds(seconds[seconds.size() / 2])
            << (seconds.size() == 1 ? "\n"
                                    : ", median of " + std::to_string(seconds.size()) + " runs\n");
}

}  // namespace

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
  auto options = std::make_shared<RunVerb>();
  CLI::App& verb =
      add_verb(app, "run", "Run a method and print what comes out",
               "executorch run model.pte --inputs x.npy --output y", [options] { run(*options); });
  add_run_options(verb, options->run);
  verb.add_option("--runs", options->n_runs, "How often")
      ->check(CLI::Range(1u, 1000000u))
      ->capture_default_str();
  verb.add_option("--output", options->output, "Write tensor output i to OUTPUT-i.npy");
  verb.add_flag("--all", options->all, "Print every element");
  verb.add_flag("--json", options->json, "Print one JSON object instead of text");
}

}  // namespace executorch::extension::command
