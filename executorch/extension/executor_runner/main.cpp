// Runs a method of a .pte file from the command line.

#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/extension/command/profiling.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/executor_runner/tracing.h>
#include <executorch/extension/module/bundled_module.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/platform/log.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using executorch::extension::BufferCleanup;
using executorch::extension::command::check;
using executorch::extension::command::fail;
using executorch::extension::command::Failure;
using executorch::extension::command::finish_standard_output;
using executorch::extension::command::LoadedProgram;
using executorch::runtime::EValue;
using executorch::runtime::Method;
using json = nlohmann::ordered_json;

namespace {

constexpr char kUsage[] =
    "Loads a program, runs one of its methods and prints what comes out.\n"
    "Inputs are ones, or the bytes of one raw file per tensor input.\n"
    "Exit code: 0 done, 1 something failed (the cause is on stderr), 2 wrong command line.";
constexpr char kExample[] =
    "Example:\n  executor_runner --model_path=model.pte --inputs=x.bin,y.bin --print_output=all";

struct Options {
  std::string model_path = "model.pte";
  std::string data_path;
  std::vector<std::string> inputs;
  std::string output_file;
  std::string print_output = "summary";
  std::string method_name;
  executorch::extension::command::Tracing tracing;
  std::string bundled_path;
  bool bundled = false;
  uint32_t testset_idx = 0;
  double bundleio_rtol = 0.01;
  double bundleio_atol = 0.01;
  std::string profile_path;
  std::string trace_path;
  bool profile = false;
  uint32_t num_executions = 1;
  int32_t cpu_threads = -1;
  bool server_mode = false;
  bool as_json = false;
  bool no_fusion = false;
  bool print_fusion = false;

  bool is_bundled() const { return bundled || !bundled_path.empty(); }
  const std::string& program_path() const {
    return bundled_path.empty() ? model_path : bundled_path;
  }
};

std::string expect_tolerance(const std::string& text) {
  double number = 0;
  const bool is_number = CLI::detail::lexical_cast(text, number);
  return is_number && number >= 0 ? "" : "'" + text + "' is no number from 0 on";
}

void declare(CLI::App& app, Options& options) {
  app.footer(kExample);
  app.add_option("--model_path", options.model_path, "Program, a .pte file")->capture_default_str();
  app.add_option("--data_path", options.data_path, "External data of the program, a .ptd file");
  app.add_option("--inputs", options.inputs, "Raw files, one per tensor input, comma-separated")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->delimiter(',');
  app.add_option("--output_file", options.output_file,
                 "Write tensor output i, raw, to OUTPUT_FILE-i.bin");
  app.add_option("--print_output", options.print_output,
                 "none, summary (first and last 100 elements) or all")
      ->check(CLI::IsMember({"none", "summary", "all"}))
      ->capture_default_str();
  app.add_option("--num_executions", options.num_executions, "How often to run")
      ->check(CLI::Range(1u, std::numeric_limits<uint32_t>::max()))
      ->capture_default_str();
  app.add_option("--method_name", options.method_name, "Default: the first method");
  app.add_option("--cpu_threads", options.cpu_threads, "-1: one per performant core")
      ->check([](const std::string& text) {
        return text == "-1" || (text.find_first_not_of("0123456789") == std::string::npos &&
                                text.find_first_not_of('0') != std::string::npos)
                   ? ""
                   : "--cpu_threads must be -1 or at least 1";
      })
      ->capture_default_str();
  app.add_flag("--server_mode,!--noserver_mode", options.server_mode,
               "Run once per line of stdin instead");
  app.add_flag("--json", options.as_json, "Print one JSON object per run instead of text");
  app.add_flag("--no_fusion", options.no_fusion,
               "Run the instructions as they are in the file, without fusion");
  app.add_flag("--print_fusion", options.print_fusion,
               "Print on stderr which instructions were fused");
}

void declare_records(CLI::App& app, Options& options) {
  app.add_option("--profile", options.profile_path,
                 "Show where the time goes instead; with a value, write that as JSON, too")
      ->expected(0, 1)
      ->each([&options](const std::string&) { options.profile = true; });
  app.add_option("--trace", options.trace_path,
                 "As --profile; also write one run to this file, for Perfetto or chrome://tracing")
      ->each([&options](const std::string&) { options.profile = true; });
  app.add_option("--etdump_path", options.tracing.etdump_path,
                 "Record loading and running to this file, for Inspector");
  app.add_flag("--dump_outputs", options.tracing.outputs, "Record the outputs of the method, too");
  app.add_flag("--dump_intermediate_outputs", options.tracing.intermediate_outputs,
               "Record what every instruction computes, too");
  app.add_option("--debug_output_path", options.tracing.debug_output_path,
                 "Where the bytes of recorded values go")
      ->capture_default_str();
  app.add_option("--debug_buffer_size", options.tracing.debug_buffer_size,
                 "How many bytes of values to record at most; 0: all")
      ->capture_default_str();
}

void declare_bundle(CLI::App& app, Options& options) {
  app.add_flag(
      "--bundled", options.bundled,
      "The program is bundled with test cases (.bpte): run one and verify its outputs; not "
      "with options that bring other inputs or measure instead");
  app.add_option("--bundled_program,--bundled_program_path", options.bundled_path,
                 "As --bundled, with this file instead of --model_path");
  app.add_option("--testset_idx", options.testset_idx, "Which test case")->capture_default_str();
  app.add_option("--bundleio_rtol", options.bundleio_rtol, "Relative tolerance of its outputs")
      ->check(expect_tolerance)
      ->capture_default_str();
  app.add_option("--bundleio_atol", options.bundleio_atol, "Absolute tolerance of its outputs")
      ->check(expect_tolerance)
      ->capture_default_str();
  const auto exclude = [&app](const char* option, std::initializer_list<const char*> others) {
    for (const char* other : others) app.get_option(option)->excludes(app.get_option(other));
  };
  for (const char* bundle : {"--bundled", "--bundled_program"}) {
    exclude(bundle, {"--inputs", "--profile", "--trace", "--server_mode"});
  }
  for (const char* profile : {"--profile", "--trace"}) {
    exclude(profile, {"--output_file", "--etdump_path", "--server_mode", "--print_fusion"});
  }
}

/// The arguments in the one spelling of gflags that CLI11 knows as well: `-name` is `--name`, and
/// an empty value of an option without a default is no value. In CLI11's order, from the last on.
std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    const bool is_long = argument.size() > 2 && argument[0] == '-' &&
                         std::isalpha(static_cast<unsigned char>(argument[1])) != 0;
    if (is_long) argument.insert(0, "-");
    const bool is_empty = argument == "--data_path=" || argument == "--inputs=" ||
                          argument == "--output_file=" || argument == "--method_name=" ||
                          argument == "--etdump_path=" || argument == "--bundled_program=";
    if (!is_empty) arguments.push_back(argument);
  }
  return arguments;
}

std::vector<std::string> read_inputs(const std::vector<std::string>& paths) {
  // Reads no more than prepare_input_tensors() accepts.
  const size_t most = executorch::extension::PrepareInputTensorsOptions().max_total_allocation_size;
  std::vector<std::string> contents;
  for (const std::string& path : paths) {
    contents.push_back(executorch::extension::command::read_input_file(path, most));
  }
  return contents;
}

BufferCleanup set_inputs(Method& method, const Options& options,
                         std::vector<std::string>& contents) {
  const auto meta = method.method_meta();
  size_t next = 0;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto tag = meta.input_tag(i);
    if (!tag.ok() || *tag != executorch::runtime::Tag::Tensor) continue;
    const auto info = meta.input_tensor_meta(i);
    check(info.error(), "read what input " + std::to_string(i) + " is");
    if (next < contents.size() && contents[next].size() != info->nbytes()) {
      fail("input file " + options.inputs[next] + " has " + std::to_string(contents[next].size()) +
           " bytes, input " + std::to_string(i) + " of the method " +
           std::to_string(info->nbytes()));
    }
    ++next;
  }
  if (!contents.empty() && contents.size() != next) {
    fail(std::to_string(contents.size()) + " input files for " + std::to_string(next) +
         " tensor inputs");
  }
  std::vector<std::pair<char*, size_t>> buffers;
  for (std::string& bytes : contents) buffers.emplace_back(bytes.data(), bytes.size());
  auto prepared = executorch::extension::prepare_input_tensors(method, {}, buffers);
  check(prepared.error(), "prepare the inputs");
  return std::move(prepared.get());
}

void write_outputs(Method& method, const std::string& base) {
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    const EValue& value = method.get_output(i);
    if (!value.isTensor()) continue;
    executorch::devtools::write_file(
        base + "-" + std::to_string(i) + ".bin",
        executorch::extension::command::bytes_of(value.toTensor(), "output " + std::to_string(i)));
  }
}

void print_outputs(Method& method, const Options& options) {
  if (options.print_output == "none") return;
  executorch::extension::command::print_outputs(std::cout, method, options.print_output == "all");
  std::cout.flush();
}

void print_json(Method& method, const std::string& name, const Options& options,
                const std::vector<double>& milliseconds) {
  const auto meta = method.method_meta();
  json report = {{"model_path", options.program_path()},
                 {"method", name},
                 {"milliseconds", milliseconds},
                 {"planned_buffers", json::array()},
                 {"outputs", json::array()}};
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    report["planned_buffers"].push_back(meta.memory_planned_buffer_size(i).get());
  }
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    report["outputs"].push_back(executorch::extension::command::output_json(
        method.get_output(i), options.print_output == "all"));
  }
  std::cout << executorch::devtools::json_text(report) << std::endl;
}

/// Executes the method as often as asked for, and shows its outputs. `set_inputs` is called before
/// each run, since a run may reuse the memory of its inputs, and returns what keeps them alive.
void run(Method& method, const std::string& name, const Options& options,
         const std::function<std::shared_ptr<void>(Method&)>& set_inputs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> milliseconds;
  std::shared_ptr<void> inputs;
  double total = 0;
  for (uint32_t i = 0; i < options.num_executions; ++i) {
    inputs = set_inputs(method);
    const auto start = Clock::now();
    check(method.execute(), "execute method '" + name + "'");
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    total += milliseconds.back();
  }
  ET_LOG(Info, "Model executed successfully %u time(s) in %f ms.", options.num_executions, total);
  ET_LOG(Info, "%zu outputs:", method.outputs_size());
  if (!options.output_file.empty()) write_outputs(method, options.output_file);
  if (options.as_json) {
    print_json(method, name, options, milliseconds);
  } else {
    print_outputs(method, options);
  }
}

void profile(const Options& options) {
  using namespace executorch::extension::command;
  auto input_contents = read_inputs(options.inputs);
  ProfileOptions runs;
  runs.n_runs = options.num_executions > 1 ? options.num_executions : 0;
  runs.fusion = !options.no_fusion;
  const auto profile = profile_program(
      {options.model_path, options.data_path, options.method_name}, runs, [&](Method& method) {
        return std::make_shared<BufferCleanup>(set_inputs(method, options, input_contents));
      });
  write_profile(profile, options.profile_path, options.trace_path);
  std::cout << (options.as_json
                    ? executorch::devtools::json_text(executorch::devtools::to_json(profile)) + "\n"
                    : executorch::devtools::to_text(profile));
}

/// The loader of external data; null for an empty path.
std::unique_ptr<executorch::runtime::DataLoader> open_data(const std::string& path) {
  using executorch::extension::MmapDataLoader;
  if (path.empty()) return nullptr;
  auto loader = MmapDataLoader::from(path.c_str(), MmapDataLoader::MlockConfig::NoMlock);
  check(loader.error(), "open " + path);
  return std::make_unique<MmapDataLoader>(std::move(*loader));
}

void report_loaded(Method& method, const Options& options) {
  if (options.print_fusion) std::cerr << executorch::optimized::last_fusion();
  const auto meta = method.method_meta();
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    ET_LOG(Info, "Planned buffer %zu has %zu bytes.", i,
           static_cast<size_t>(meta.memory_planned_buffer_size(i).get()));
  }
}

void run_bundled(Options& options) {
  using executorch::extension::BundledModule;
  const std::string& path = options.program_path();
  auto module =
      BundledModule::from_file(path, nullptr, nullptr, nullptr, open_data(options.data_path));
  check(module.error(), "load " + path);
  check((*module)->load(), "load the program in " + path);
  std::string name = options.method_name;
  if (name.empty()) {
    const auto first = (*module)->program()->get_method_name(0);
    check(first.error(), "find a method in " + path);
    name = *first;
  }
  check((*module)->load_method(name, nullptr, options.tracing.start()),
        "load method '" + name + "'");
  const std::string test = "test case " + std::to_string(options.testset_idx);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the one way to the Method itself
  const auto loaded = (*module)->method(name);
#pragma GCC diagnostic pop
  check(loaded.error(), "find method '" + name + "'");
  report_loaded(**loaded, options);
  run(**loaded, name, options, [&](Method&) {
    check((*module)->load_inputs(name, options.testset_idx),
          "set the inputs of " + test + " of method '" + name + "'");
    return nullptr;
  });
  check((*module)->verify_method_outputs(name, options.testset_idx, options.bundleio_rtol,
                                         options.bundleio_atol),
        "verify the outputs of " + test);
  ET_LOG(Info, "Outputs of test case %u are as expected.", options.testset_idx);
}

/// Throws Failure where a file would be written that is read, or written twice.
void check_outputs(const Options& options) {
  std::vector<std::string> outputs = {options.profile_path, options.trace_path,
                                      options.tracing.etdump_path};
  if (options.tracing.records_values()) outputs.push_back(options.tracing.debug_output_path);
  std::vector<std::string> inputs = options.inputs;
  inputs.insert(inputs.end(), {options.program_path(), options.data_path});
  executorch::extension::command::check_output_paths(outputs, inputs);
}

void run_program(Options& options) {
  check_outputs(options);
  executorch::extension::command::use_threads(
      static_cast<uint32_t>(std::max(options.cpu_threads, 0)));
  if (options.profile) return profile(options);
  executorch::optimized::set_fusion_enabled(!options.no_fusion);
  if (options.is_bundled()) {
    run_bundled(options);
    return options.tracing.finish();
  }
  LoadedProgram module({options.model_path, options.data_path, options.method_name});
  ET_LOG(Info, "Model file %s is loaded.", options.model_path.c_str());
  const std::string& name = module.method_name();
  ET_LOG(Info, "Using method %s", name.c_str());
  Method& method = module.load_chosen_method(options.tracing.start());
  report_loaded(method, options);
  auto input_contents = read_inputs(options.inputs);
  const auto set = [&](Method& to) {
    return std::make_shared<BufferCleanup>(set_inputs(to, options, input_contents));
  };
  if (!options.server_mode) {
    run(method, name, options, set);
    return options.tracing.finish();
  }
  for (std::string line; std::getline(std::cin, line);) {
    run(method, name, options, set);
    ET_LOG(Info, "SERVER MODE DONE");
  }
  options.tracing.finish();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond a limit is then an error with a path
  Options options;
  CLI::App app(kUsage, "executor_runner");
  // As in gflags, so that a caller of a script can replace what the script says.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  declare(app, options);
  declare_records(app, options);
  declare_bundle(app, options);
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    run_program(options);
    finish_standard_output();
    return 0;
  } catch (const Failure& failure) {
    std::cerr << "executor_runner: " << failure.cause << std::endl;
    return failure.exit_code;
  } catch (const executorch::devtools::InspectError& error) {
    std::cerr << "executor_runner: " << error.message << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "executor_runner: " << error.what() << std::endl;
  }
  return 1;
}
