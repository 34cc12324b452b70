// Runs a method of a .pte file from the command line.

#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::BufferCleanup;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Method;
using nlohmann::json;

namespace {

constexpr char kUsage[] =
    "Loads a program, runs one of its methods and prints what comes out.\n"
    "Inputs are ones, or the bytes of one raw file per tensor input.\n"
    "Exit code: 0 done, 1 something failed (the cause is on stderr), 2 wrong command line.";
constexpr char kExample[] =
    "Example:\n  executor_runner --model_path=model.pte --inputs=x.bin,y.bin --print_output=all";
constexpr long kSummaryEdgeItems = 100;

struct Options {
  std::string model_path = "model.pte";
  std::string data_path;
  std::vector<std::string> inputs;
  std::string output_file;
  std::string print_output = "summary";
  std::string method_name;
  std::string etdump_path = "model.etdump";
  uint32_t num_executions = 1;
  int32_t cpu_threads = -1;
  bool server_mode = false;
  bool as_json = false;
  bool no_fusion = false;
  bool print_fusion = false;
};

/// A failure with its cause, to end main with.
struct Failure {
  std::string cause;
};

[[noreturn]] void fail(std::string cause) {
  throw Failure{std::move(cause)};
}

void check(Error error, const std::string& what) {
  if (error != Error::Ok) {
    fail("cannot " + what + ": " + executorch::runtime::to_string(error));
  }
}

/// The module keeps the loaded Method, whose inputs are prepared here.
class RunnerModule final : public Module {
 public:
  using Module::Module;
  Method& loaded(const std::string& name) { return *methods_.at(name).method; }
};

void add_unavailable(CLI::App& app, const std::string& flag, const std::string& what) {
  app.add_option_function<std::string>(
      flag,
      [flag](const std::string&) {
        std::cerr << "executor_runner: " << flag
                  << " has no effect, this build has no developer tools\n";
      },
      what + " (needs a build with developer tools)");
}

void declare(CLI::App& app, Options& options) {
  app.footer(kExample);
  app.add_option("--model_path", options.model_path, "Program, a .pte file")->capture_default_str();
  app.add_option("--data_path", options.data_path, "External data of the program, a .ptd file");
  app.add_option("--inputs", options.inputs, "Raw files, one per tensor input, comma-separated")
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
  app.add_flag("--no_fusion", options.no_fusion, "Run the instructions one by one, as in the file");
  app.add_flag("--print_fusion", options.print_fusion,
               "Print which instructions run as one, on stderr");
  add_unavailable(app, "--etdump_path", "Where to write the profile");
  add_unavailable(app, "--bundleio_rtol", "Relative tolerance for bundled outputs");
  add_unavailable(app, "--bundleio_atol", "Absolute tolerance for bundled outputs");
}

std::string first_method(RunnerModule& module) {
  if (module.program()->num_methods() == 0) {
    fail("the program has no method");
  }
  const auto name = module.program()->get_method_name(0);
  check(name.error(), "get the name of the first method");
  return *name;
}

std::string choose_method(RunnerModule& module, const Options& options) {
  const std::string name = options.method_name.empty() ? first_method(module) : options.method_name;
  const auto names = module.method_names();
  check(names.error(), "list the methods");
  if (names->count(name) == 0) {
    std::string known;
    for (const std::string& other : *names) {
      known += (known.empty() ? "" : ", ") + other;
    }
    fail("no method '" + name + "' in " + options.model_path + "; it has: " + known);
  }
  return name;
}

std::vector<std::string> read_inputs(const std::vector<std::string>& paths) {
  std::vector<std::string> contents;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream bytes;
    if (!file || (file.peek() != EOF && !(bytes << file.rdbuf()))) {
      fail("cannot read input file " + path);
    }
    contents.push_back(bytes.str());
  }
  return contents;
}

BufferCleanup set_inputs(Method& method, const Options& options,
                         std::vector<std::string>& contents) {
  const auto meta = method.method_meta();
  size_t next = 0;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto info = meta.input_tensor_meta(i);
    if (!info.ok()) {
      continue;
    }
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
  for (std::string& bytes : contents) {
    buffers.emplace_back(bytes.data(), bytes.size());
  }
  auto prepared = executorch::extension::prepare_input_tensors(method, {}, buffers);
  check(prepared.error(), "prepare the inputs");
  return std::move(prepared.get());
}

template <typename T>
json numbers(const Tensor& tensor) {
  json list = json::array();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    const T value = tensor.const_data_ptr<T>()[i];
    if constexpr (executorch::runtime::is_floating_point<T>::value) {
      list.push_back(static_cast<double>(value));
    } else {
      list.push_back(value);
    }
  }
  return list;
}

json to_json(const EValue& value, bool with_data) {
  if (!value.isTensor()) {
    std::stringstream text;
    text << value;
    return text.str();
  }
  const Tensor& tensor = value.toTensor();
  json described = {
      {"dtype", executorch::runtime::toString(tensor.scalar_type())},
      {"sizes", std::vector<int>(tensor.sizes().begin(), tensor.sizes().end())},
      {"dim_order", std::vector<int>(tensor.dim_order().begin(), tensor.dim_order().end())}};
  if (with_data) {
    switch (tensor.scalar_type()) {
#define NUMBERS(ctype, name)                    \
  case ScalarType::name:                        \
    described["data"] = numbers<ctype>(tensor); \
    break;
      ET_FORALL_REALHBBF16_TYPES(NUMBERS)
#undef NUMBERS
      default:
        break;
    }
  }
  return described;
}

void write_outputs(Method& method, const std::string& base) {
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    const EValue& value = method.get_output(i);
    if (!value.isTensor()) {
      continue;
    }
    const std::string path = base + "-" + std::to_string(i) + ".bin";
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(value.toTensor().const_data_ptr()),
               static_cast<std::streamsize>(value.toTensor().nbytes()));
    if (!file.flush()) {
      fail("cannot write output file " + path);
    }
  }
}

void print_outputs(Method& method, const Options& options) {
  if (options.print_output == "none") {
    return;
  }
  const bool all = options.print_output == "all";
  std::cout << executorch::extension::evalue_edge_items(all ? std::numeric_limits<long>::max() / 2
                                                            : kSummaryEdgeItems);
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    std::cout << "OutputX " << i << ": " << method.get_output(i) << "\n";
  }
  std::cout.flush();
}

void print_json(Method& method, const std::string& name, const Options& options,
                const std::vector<double>& milliseconds) {
  const auto meta = method.method_meta();
  json report = {{"model_path", options.model_path},
                 {"method", name},
                 {"milliseconds", milliseconds},
                 {"planned_buffers", json::array()},
                 {"outputs", json::array()}};
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    report["planned_buffers"].push_back(meta.memory_planned_buffer_size(i).get());
  }
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    report["outputs"].push_back(to_json(method.get_output(i), options.print_output == "all"));
  }
  std::cout << report.dump() << std::endl;
}

void run(Method& method, const std::string& name, const Options& options,
         std::vector<std::string>& input_contents) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> milliseconds;
  std::optional<BufferCleanup> inputs;
  double total = 0;
  for (uint32_t i = 0; i < options.num_executions; ++i) {
    // A run may reuse the memory of its inputs.
    inputs.emplace(set_inputs(method, options, input_contents));
    const auto start = Clock::now();
    check(method.execute(), "execute method '" + name + "'");
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    total += milliseconds.back();
  }
  ET_LOG(Info, "Model executed successfully %u time(s) in %f ms.", options.num_executions, total);
  ET_LOG(Info, "%zu outputs:", method.outputs_size());
  if (!options.output_file.empty()) {
    write_outputs(method, options.output_file);
  }
  if (options.as_json) {
    print_json(method, name, options, milliseconds);
  } else {
    print_outputs(method, options);
  }
}

void use_threads(int32_t count) {
  if (count > 0) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    executorch::extension::threadpool::get_threadpool()->_unsafe_reset_threadpool(
        static_cast<uint32_t>(count));
#pragma GCC diagnostic pop
  }
}

void run_program(const Options& options) {
  use_threads(options.cpu_threads);
  RunnerModule module(options.model_path, options.data_path, Module::LoadMode::Mmap);
  check(module.load(), "load " + options.model_path +
                           (options.data_path.empty() ? "" : " with " + options.data_path));
  ET_LOG(Info, "Model file %s is loaded.", options.model_path.c_str());
  const std::string name = choose_method(module, options);
  ET_LOG(Info, "Using method %s", name.c_str());
  executorch::optimized::set_fusion_enabled(!options.no_fusion);
  check(module.load_method(name), "load method '" + name + "'");
  if (options.print_fusion) {
    std::cerr << executorch::optimized::last_fusion();
  }
  Method& method = module.loaded(name);
  const auto meta = method.method_meta();
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    ET_LOG(Info, "Planned buffer %zu has %zu bytes.", i,
           static_cast<size_t>(meta.memory_planned_buffer_size(i).get()));
  }
  auto input_contents = read_inputs(options.inputs);
  if (!options.server_mode) {
    return run(method, name, options, input_contents);
  }
  for (std::string line; std::getline(std::cin, line);) {
    run(method, name, options, input_contents);
    ET_LOG(Info, "SERVER MODE DONE");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(kUsage, "executor_runner");
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    run_program(options);
  } catch (const Failure& failure) {
    std::cerr << "executor_runner: " << failure.cause << std::endl;
    return 1;
  }
  return 0;
}
