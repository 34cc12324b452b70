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

double run_once(runtime::Method& method, const Inputs& inputs, const std::string& name) {
  const auto held = inputs.set(method);
  const auto start = std::chrono::steady_clock::now();
  check(method.execute(), "execute method '" + name + "'");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

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
    devtools::Json out = {{"program", verb.run.program.model_path},
                          {"method", program.method_name()},
                          {"seconds", seconds},
                          {"outputs", devtools::Json::array()}};
    for (size_t i = 0; i < method.outputs_size(); ++i) {
      devtools::Json output = output_json(method.get_output(i), verb.all);
      const std::string name = method.output_name(i);
      if (!name.empty() && output.is_object()) output["name"] = name;
      out["outputs"].push_back(std::move(output));
    }
    std::cout << devtools::json_text(out) << "\n";
    return;
  }
  print_outputs(std::cout, method, verb.all);
  std::sort(seconds.begin(), seconds.end());
  std::cout << devtools::format_seconds(seconds[seconds.size() / 2])
            << (seconds.size() == 1 ? "\n"
                                    : ", median of " + std::to_string(seconds.size()) + " runs\n");
}

}  // namespace executorch::extension::command
