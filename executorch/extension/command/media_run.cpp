#include <executorch/devtools/inspect/table.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/media_files.h>
#include <executorch/extension/command/media_run.h>
#include <executorch/extension/command/text_run.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

namespace executorch::extension::command {
namespace {

using llm::MultimodalInput;

constexpr char kImagePlace[] = "<image>";
constexpr char kSoundPlace[] = "<audio>";

std::unique_ptr<tokenizers::Tokenizer> tokenizer_of(const TextOptions& options) {
  if (!options.tokenizer_path.empty()) {
    auto tokenizer = llm::load_tokenizer(options.tokenizer_path);
    if (tokenizer == nullptr) fail("cannot read the tokenizer " + options.tokenizer_path);
    return tokenizer;
  }
  Module module(options.model_path, Module::LoadMode::Mmap);
  check(module.load(), "load " + options.model_path);
  auto tokenizer = llm::named_tokenizer(module);
  if (!tokenizer.ok()) check(tokenizer.error(), "read the tokenizer in " + options.model_path);
  if (*tokenizer == nullptr) {
    fail(options.model_path + " has no tokenizer inside; give its file with --tokenizer");
  }
  return std::move(*tokenizer);
}

std::unique_ptr<llm::MultimodalRunner> load_runner(
    const TextOptions& options, std::unique_ptr<tokenizers::Tokenizer> tokenizer) {
  use_threads(options.n_threads);
  if (options.data_files.size() > 1) fail("--data: one file at most with --image and --audio");
  std::optional<const std::string> data;
  if (!options.data_files.empty()) data.emplace(options.data_files[0]);
  auto runner = llm::create_multimodal_runner(options.model_path, std::move(tokenizer), data,
                                              Module::LoadMode::Mmap);
  if (runner == nullptr) fail("cannot run " + options.model_path + " with images or sound");
  check(runner->load(), "load " + options.model_path);
  return runner;
}

int32_t default_n_bos(const TextOptions& options) {
  Module module(options.model_path, Module::LoadMode::Mmap);
  const auto names = module.method_names();
  return names.ok() && names->count(llm::kBosId) != 0 ? 1 : 0;
}

llm::GenerationConfig config_of(const GenerateVerb& verb) {
  const TextOptions& options = verb.text;
  llm::GenerationConfig config;
  config.echo = false;
  config.temperature = options.temperature;
  config.max_new_tokens = static_cast<int32_t>(
      std::min<int64_t>(options.n_tokens, std::numeric_limits<int32_t>::max()));
  config.num_bos = verb.n_bos >= 0 ? verb.n_bos : default_n_bos(options);
  config.ignore_eos = options.ignore_eos;
  if (!options.regex.empty()) {
    config.grammar_type = "regex";
    config.grammar = options.regex;
  } else if (!options.schema_file.empty()) {
    config.grammar_type = "json_schema";
    config.grammar = read_file(options.schema_file);
  }
  return config;
}

}  // namespace

std::vector<MultimodalInput> pieces_of(const std::string& prompt,
                                       std::vector<MultimodalInput> images,
                                       std::vector<MultimodalInput> sounds) {
  std::vector<MultimodalInput> pieces;
  size_t n_images = 0, n_sounds = 0, begin = 0;
  const auto place = [&](size_t at, const char* name, std::vector<MultimodalInput>& media,
                         size_t& n) {
    if (at > begin) pieces.push_back(llm::make_text_input(prompt.substr(begin, at - begin)));
    begin = at + std::string(name).size();
    if (n == media.size()) {
      fail(std::string("the prompt has more places ") + name +
           " than files that are given: " + std::to_string(media.size()));
    }
    pieces.push_back(std::move(media[n++]));
  };
  for (;;) {
    const size_t image = prompt.find(kImagePlace, begin);
    const size_t sound = prompt.find(kSoundPlace, begin);
    if (image == prompt.npos && sound == prompt.npos) break;
    if (image < sound) {
      place(image, kImagePlace, images, n_images);
    } else {
      place(sound, kSoundPlace, sounds, n_sounds);
    }
  }
  if (begin < prompt.size()) pieces.push_back(llm::make_text_input(prompt.substr(begin)));
  std::vector<MultimodalInput> first;
  std::move(images.begin() + static_cast<std::ptrdiff_t>(n_images), images.end(),
            std::back_inserter(first));
  std::move(sounds.begin() + static_cast<std::ptrdiff_t>(n_sounds), sounds.end(),
            std::back_inserter(first));
  pieces.insert(pieces.begin(), std::make_move_iterator(first.begin()),
                std::make_move_iterator(first.end()));
  return pieces;
}

void continue_media(const GenerateVerb& verb, const std::string& prompt) {
  auto tokenizer = tokenizer_of(verb.text);
  std::vector<MultimodalInput> images, sounds;
  for (const std::string& path : verb.images) images.push_back(read_image(path));
  for (const std::string& path : verb.sounds) sounds.push_back(read_sound(path));
  const auto pieces = pieces_of(prompt, std::move(images), std::move(sounds));
  // In front of an image or a sound it is the program's own token, if it names one.
  if (pieces[0].is_text() || default_n_bos(verb.text) == 0) check_bos(verb.n_bos, *tokenizer);
  const auto runner = load_runner(verb.text, std::move(tokenizer));
  std::string text = verb.echo ? prompt : "";
  if (!verb.text.json) std::cout << text << std::flush;
  llm::Stats stats;
  const auto error = runner->generate(
      pieces, config_of(verb),
      [&](const std::string& piece) {
        text += piece;
        if (!verb.text.json) std::cout << piece << std::flush;
      },
      [&](const llm::Stats& found) {
        stats.num_prompt_tokens = found.num_prompt_tokens;
        stats.num_generated_tokens = found.num_generated_tokens;
      });
  check(error, "continue the prompt with " + verb.text.model_path);
  if (!verb.text.json) {
    std::cout << std::endl;
    return;
  }
  std::cout << devtools::json_text({{"text", text},
                                    {"tokens", stats.num_generated_tokens},
                                    {"prompt_tokens", stats.num_prompt_tokens}})
            << std::endl;
}

}  // namespace executorch::extension::command
