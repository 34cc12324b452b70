#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/media_run.h>
#include <executorch/extension/command/text_run.h>
#include <executorch/extension/command/verbs.h>

#include <unistd.h>

#include <cstdio>
#include <iostream>

namespace executorch::extension::command {
namespace {

std::string read_prompt(const GenerateVerb& verb) {
  if (verb.prompt.has_value()) return *verb.prompt;
  if (verb.prompt_file.has_value() && *verb.prompt_file != "-") return read_file(*verb.prompt_file);
  if (!isatty(0)) return read_all(std::cin);
  std::cerr << "Prompt: " << std::flush;
  std::string line;
  std::getline(std::cin, line);
  return line;
}

void print_rates(const llm::GenerationResult& result) {
  const auto per_second = [](std::optional<double> rate) {
    char text[40] = "";
    if (rate.has_value()) std::snprintf(text, sizeof(text), ", %.1f tokens/s", *rate);
    return std::string(text);
  };
  std::fprintf(stderr, "%lld tokens of prompt%s; %zu new%s; ended by %s\n",
               static_cast<long long>(result.n_prompt_tokens),
               per_second(prefill_rate(result)).c_str(), result.tokens.size(),
               per_second(decode_rate(result)).c_str(), to_string(result.finish_reason));
}

}  // namespace

void generate(const GenerateVerb& verb) {
  if (!verb.images.empty() || !verb.sounds.empty()) {
    continue_media(verb, read_prompt(verb));
    return;
  }
  TextRun run(verb.text);
  check_bos(verb.n_bos, *run.engine().tokenizer());
  const std::string prompt = read_prompt(verb);
  const int n_bos = verb.n_bos >= 0 ? verb.n_bos : run.engine().default_n_bos();
  auto tokens = run.encode(prompt, n_bos);
  if (verb.text.json) {
    auto result = run.run(std::move(tokens), run.generation(), {});
    if (verb.echo) result.text = prompt + result.text;
    std::cout << devtools::json_text(run.json(result)) << std::endl;
    return;
  }
  if (verb.echo) std::cout << prompt << std::flush;
  const auto result = run.run(std::move(tokens), run.generation(),
                              [](const std::string& text) { std::cout << text << std::flush; });
  std::cout << std::endl;
  print_rates(result);
}

}  // namespace executorch::extension::command
