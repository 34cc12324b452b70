#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/tokenizers/tokenizer_file.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

namespace {

/// What a runner must not choose: tokens without text, but for those that end one.
std::vector<uint64_t> excluded_tokens(const ::tokenizers::Tokenizer& tokenizer,
                                      const ProgramForm& form,
                                      const std::unordered_set<uint64_t>& eos_ids) {
  std::vector<uint64_t> tokens = unknown_tokens(&tokenizer, form.vocabulary_size);
  const auto ends = [&](uint64_t token) { return eos_ids.count(token) != 0; };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), ends), tokens.end());
  return tokens;
}

}  // namespace

std::unique_ptr<tokenizers::Tokenizer> load_tokenizer(
    const std::string& tokenizer_path, std::unique_ptr<std::vector<std::string>> special_tokens,
    std::optional<std::string> pattern, size_t bos_token_index, size_t eos_token_index) {
  tokenizers::TokenizerOptions options;
  if (special_tokens != nullptr) options.special_tokens = std::move(*special_tokens);
  options.pattern = pattern.value_or("");
  options.bos_index = bos_token_index;
  options.eos_index = eos_token_index;
  std::string cause;
  auto tokenizer = tokenizers::load_tokenizer_file(tokenizer_path, &cause, options);
  if (tokenizer == nullptr) {
    ET_LOG(Error, "cannot read the tokenizer %s: %s", tokenizer_path.c_str(), cause.c_str());
  }
  return tokenizer;
}

Result<std::unordered_map<std::string, int64_t>> get_llm_metadata(tokenizers::Tokenizer* tokenizer,
                                                                  Module* module) {
  ET_CHECK_OR_RETURN_ERROR(module != nullptr, InvalidArgument,
                           "get_llm_metadata: there is no module");
  ET_ASSIGN_OR_RETURN(const ProgramForm form, program_form(*module, kForwardMethod));
  return read_metadata(*module, form, tokenizer);
}

std::unordered_set<uint64_t> get_eos_ids(tokenizers::Tokenizer* tokenizer, Module* module) {
  if (module == nullptr) {
    ET_LOG(Error, "get_eos_ids: there is no module");
    return {};
  }
  return read_eos_ids(*module, tokenizer);
}

std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path, float temperature, const std::string& method_name,
    Module::LoadMode load_mode) {
  std::vector<std::string> data_files;
  if (data_path.has_value()) data_files.push_back(*data_path);
  return create_text_llm_runner(model_path, std::move(tokenizer), std::move(data_files),
                                temperature, nullptr, method_name, load_mode);
}

std::unique_ptr<TextLLMRunner> create_text_llm_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::vector<std::string> data_files, float temperature,
    std::unique_ptr<runtime::EventTracer> event_tracer, const std::string& method_name,
    Module::LoadMode load_mode) {
  if (tokenizer == nullptr || !tokenizer->is_loaded()) {
    ET_LOG(Error, "a runner of %s needs a tokenizer that is loaded", model_path.c_str());
    return nullptr;
  }
  auto module = std::make_unique<Module>(model_path, std::move(data_files), load_mode,
                                         std::move(event_tracer));
  const auto names = module->method_names();
  if (!names.ok()) {
    ET_LOG(Error, "cannot load %s: %s", model_path.c_str(), runtime::to_string(names.error()));
    return nullptr;
  }
  const bool has_two = names->count(method_name) == 0 && names->count(kPrefillMethod) != 0 &&
                       names->count(kDecodeMethod) != 0;
  const std::string prefill_method = has_two ? kPrefillMethod : method_name;
  const Result<ProgramForm> form = program_form(*module, prefill_method);
  if (!form.ok()) {
    ET_LOG(Error, "cannot run %s: %s", model_path.c_str(), runtime::to_string(form.error()));
    return nullptr;
  }
  auto metadata = read_metadata(*module, *form, tokenizer.get());
  auto eos_ids =
      std::make_unique<std::unordered_set<uint64_t>>(read_eos_ids(*module, tokenizer.get()));
  auto stats = std::make_unique<Stats>();
  auto io_manager = std::make_unique<IOManager>(*module);
  const auto excluded = excluded_tokens(*tokenizer, *form, *eos_ids);
  const auto make_decoder = [&](const std::string& method) {
    auto made = std::make_unique<TextDecoderRunner>(module.get(), io_manager.get(), method, nullptr,
                                                    stats.get());
    made->exclude_tokens(excluded);
    return made;
  };
  auto decoder = make_decoder(prefill_method);
  auto second_decoder = has_two ? make_decoder(kDecodeMethod) : nullptr;
  const bool has_caches = metadata.at(kUseKVCache) != 0;
  auto prefiller =
      std::make_unique<TextPrefiller>(decoder.get(), has_caches, form->max_tokens > 1,
                                      std::min(form->max_tokens, metadata.at(kMaxSeqLen)));
  auto generator = std::make_unique<TextTokenGenerator>(
      tokenizer.get(), has_two ? second_decoder.get() : decoder.get(), has_caches,
      std::move(eos_ids), stats.get());
  return std::make_unique<TextLLMRunner>(
      std::move(metadata), std::move(tokenizer), std::move(module), std::move(decoder),
      std::move(prefiller), std::move(io_manager), std::move(generator), std::move(stats),
      temperature, std::move(second_decoder));
}

std::unique_ptr<MultimodalRunner> create_multimodal_runner(
    const std::string& model_path, std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
    std::optional<const std::string> data_path, Module::LoadMode load_mode) {
  if (tokenizer == nullptr || !tokenizer->is_loaded()) {
    ET_LOG(Error, "a runner of %s needs a tokenizer that is loaded", model_path.c_str());
    return nullptr;
  }
  std::vector<std::string> data_files;
  if (data_path.has_value()) data_files.push_back(*data_path);
  auto module = std::make_unique<Module>(model_path, std::move(data_files), load_mode);
  auto io_manager = std::make_unique<IOManager>(*module);
  auto decoder = std::make_unique<MultimodalDecoderRunner>(module.get(), io_manager.get());
  const Error error = decoder->load();
  if (error != Error::Ok) {
    ET_LOG(Error, "cannot run %s with methods '%s' and '%s': %s", model_path.c_str(),
           kTokenEmbeddingMethod, kTextModelMethod, runtime::to_string(error));
    return nullptr;
  }
  auto metadata = read_metadata(*module, decoder->form(), tokenizer.get());
  auto stats = std::make_unique<Stats>();
  auto prefiller = std::make_unique<MultimodalPrefiller>(module.get(), decoder.get(),
                                                         tokenizer.get(), io_manager.get());
  auto eos_ids =
      std::make_unique<std::unordered_set<uint64_t>>(read_eos_ids(*module, tokenizer.get()));
  decoder->exclude_tokens(excluded_tokens(*tokenizer, decoder->form(), *eos_ids));
  auto generator = std::make_unique<TextTokenGenerator>(tokenizer.get(), decoder.get(), true,
                                                        std::move(eos_ids), stats.get());
  return std::make_unique<MultimodalRunner>(
      std::move(metadata), std::move(tokenizer), std::move(module), std::move(decoder),
      std::move(prefiller), std::move(io_manager), std::move(generator), std::move(stats));
}

}  // namespace executorch::extension::llm
