// Continue a prompt with an exported GPT: load, encode, run, sample, print, repeat.

#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/profiling.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "basic_sampler.h"
#include "basic_tokenizer.h"

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Result;

namespace {

struct Options {
  std::string model = "nanogpt.pte";
  std::string vocabulary = "vocab.json";
  std::string prompt;
  size_t max_output_length = 120;  // tokens
  float temperature = 0.8f;
  uint64_t seed = 1;
  bool profile = false;
};

// Ends the program: what went wrong was logged where it happened, `doing` says where we were.
[[noreturn]] void fail(const std::string& doing, Error error) {
  std::cerr << "nanogpt_runner: " << doing << ": " << executorch::runtime::to_string(error)
            << std::endl;
  std::exit(1);
}

// The value of a method without inputs, such as get_max_seq_len, or `otherwise` without one.
int64_t metadata(Module& model, const std::string& method, int64_t otherwise) {
  auto names = model.method_names();
  if (!names.ok()) fail("cannot load the model", names.error());
  if (names->count(method) == 0) return otherwise;
  auto value = model.get(method);
  return value.ok() && value->isInt() ? value->toInt() : otherwise;
}

// Prints the continuation of `prompt` token by token; returns how many tokens it took.
size_t generate(Module& model, const std::string& prompt, BasicTokenizer& tokenizer,
                BasicSampler& sampler, size_t max_input_length, size_t max_output_length) {
  std::vector<int64_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty() || tokens.size() > max_input_length) {
    std::cerr << "nanogpt_runner: the prompt has " << tokens.size()
              << " tokens; the model takes 1 to " << max_input_length << std::endl;
    std::exit(1);
  }
  const int64_t end_of_text = metadata(model, "get_eos_id", 50256);
  std::cout << prompt << std::flush;
  for (size_t n = 0; n < max_output_length; ++n) {
    // The model is stateless: it reads the last `max_input_length` tokens again each time.
    const size_t first = tokens.size() > max_input_length ? tokens.size() - max_input_length : 0;
    auto input = from_blob(tokens.data() + first, {1, static_cast<int>(tokens.size() - first)},
                           ScalarType::Long);
    Result<std::vector<EValue>> outputs = model.forward(input);
    if (!outputs.ok()) fail("cannot run the model", outputs.error());
    Tensor logits = outputs->at(0).toTensor();  // [1, 1, vocabulary]
    const float* values = logits.const_data_ptr<float>();
    const int64_t next = sampler.sample(std::vector<float>(values, values + logits.numel()));
    if (next == end_of_text) return n;
    std::cout << tokenizer.decode({next}) << std::flush;
    tokens.push_back(next);
  }
  return max_output_length;
}

// Where the time of one step goes that reads the whole prompt.
int profile(const std::string& model, std::vector<int64_t> tokens) {
  namespace command = executorch::extension::command;
  auto input = from_blob(tokens.data(), {1, static_cast<int>(tokens.size())}, ScalarType::Long);
  const auto set_input = [&](executorch::runtime::Method& method) -> std::shared_ptr<void> {
    const Error error = method.set_input(EValue(input), 0);
    if (error != Error::Ok) fail("the prompt is no input of the model", error);
    return nullptr;
  };
  try {
    const auto found = command::profile_program({model, "", "forward"}, {}, set_input);
    std::cout << executorch::devtools::to_text(found);
    return 0;
  } catch (const command::Failure& failure) {
    std::cerr << "nanogpt_runner: " << failure.cause << std::endl;
    return 1;
  }
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Continue a prompt with an exported GPT.\n"
      "Example: nanogpt_runner --model nanogpt.pte --vocab vocab.json --prompt 'ROMEO:'"};
  app.add_option("--model", options.model, "program to run")->capture_default_str();
  app.add_option("--vocab", options.vocabulary, "vocabulary, JSON")->capture_default_str();
  app.add_option("--prompt", options.prompt, "text to continue; asked for when absent");
  app.add_option("--tokens", options.max_output_length, "most tokens to add")
      ->capture_default_str();
  app.add_option("--temperature", options.temperature, "0 takes the likeliest token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the random choice")->capture_default_str();
  app.add_flag("--profile", options.profile,
               "show where the time of reading the prompt goes, instead of continuing it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  if (options.prompt.empty()) {
    std::cout << "Enter model prompt: " << std::flush;
    std::getline(std::cin, options.prompt);
  }
  BasicTokenizer tokenizer(options.vocabulary);
  if (options.profile) return profile(options.model, tokenizer.encode(options.prompt));
  BasicSampler sampler(options.temperature, options.seed);
  Module model(options.model, Module::LoadMode::MmapUseMlockIgnoreErrors);
  const auto max_input_length = static_cast<size_t>(metadata(model, "get_max_seq_len", 1024));

  const auto start = std::chrono::steady_clock::now();
  const size_t n = generate(model, options.prompt, tokenizer, sampler, max_input_length,
                            options.max_output_length);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << std::endl;
  std::cerr << n << " tokens, " << static_cast<double>(n) / seconds.count() << " tokens/s"
            << std::endl;
  return 0;
}
