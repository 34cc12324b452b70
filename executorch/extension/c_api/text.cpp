#include <executorch/extension/c_api/executorch.h>
#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/extension/llm/runner/text_session.h>

#include <cinttypes>
#include <memory>
#include <string>
#include <utility>

namespace llm = executorch::extension::llm;
using executorch::extension::c_api::all_given;
using executorch::extension::c_api::guarded;
using executorch::runtime::Error;

struct executorch_text {
  std::unique_ptr<llm::TextEngine> engine;
  std::unique_ptr<llm::TextSession> session;
  std::string added;
};

namespace {

llm::GenerationOptions options_of(const executorch_text_options& given) {
  llm::GenerationOptions options;
  options.sampling.temperature = given.temperature;
  options.sampling.top_p = given.top_p;
  options.sampling.top_k = given.top_k;
  options.sampling.seed = given.seed;
  options.max_new_tokens = given.max_new_tokens;
  return options;
}

executorch_text_options defaults() {
  const llm::GenerationOptions options;
  executorch_text_options given{};
  given.struct_size = sizeof(given);
  given.temperature = options.sampling.temperature;
  given.top_p = options.sampling.top_p;
  given.top_k = options.sampling.top_k;
  given.seed = options.sampling.seed;
  given.max_new_tokens = options.max_new_tokens;
  return given;
}

Error load(const char* model_path, const char* tokenizer_path, executorch_text** text) {
  llm::EngineOptions options;
  options.model_path = model_path;
  options.tokenizer_path = tokenizer_path == nullptr ? "" : tokenizer_path;
  auto engine = llm::TextEngine::load(options);
  ET_CHECK_OK_OR_RETURN_ERROR(engine.error());
  ET_CHECK_OR_RETURN_ERROR((*engine)->tokenizer() != nullptr, InvalidArgument,
                           "%s has no tokenizer in it; give one", model_path);
  auto session = (*engine)->create_text_session();
  ET_CHECK_OK_OR_RETURN_ERROR(session.error());
  auto handle = std::make_unique<executorch_text>();
  handle->engine = std::move(*engine);
  handle->session = std::move(*session);
  *text = handle.release();
  return Error::Ok;
}

Error generate(executorch_text& text, const char* prompt, const executorch_text_options& given,
               executorch_text_function on_text, void* user, executorch_text_result* result) {
  ET_CHECK_OR_RETURN_ERROR(given.struct_size == sizeof(given), InvalidArgument,
                           "options have struct_size %" PRIu32
                           ", expected %zu; use "
                           "executorch_text_options_init()",
                           given.struct_size, sizeof(given));
  auto tokens = text.engine->encode(prompt, text.engine->default_n_bos());
  ET_CHECK_OK_OR_RETURN_ERROR(tokens.error());
  ET_CHECK_OK_OR_RETURN_ERROR(text.session->set_text(std::move(*tokens)));
  llm::GenerationOptions options = options_of(given);
  if (on_text != nullptr) {
    options.on_text = [=](const std::string& piece) {
      return on_text(piece.c_str(), piece.size(), user) == 0;
    };
  }
  auto made = text.session->generate(options);
  ET_CHECK_OK_OR_RETURN_ERROR(made.error());
  text.added = std::move(made->text);
  if (result == nullptr) return Error::Ok;
  *result = {};
  result->text = text.added.c_str();
  result->finish_reason = llm::to_string(made->finish_reason);
  result->n_prompt_tokens = made->n_prompt_tokens;
  result->n_new_tokens = static_cast<int64_t>(made->tokens.size());
  result->time_to_first_token_seconds = made->time_to_first_token_seconds;
  result->decode_seconds = made->decode_seconds;
  return Error::Ok;
}

}  // namespace

executorch_status executorch_text_load(const char* model_path, const char* tokenizer_path,
                                       executorch_text** text) {
  return guarded("executorch_text_load", [&] {
    if (!all_given("model_path and text", model_path, text)) return Error::InvalidArgument;
    return load(model_path, tokenizer_path, text);
  });
}

void executorch_text_free(executorch_text* text) {
  delete text;
}

executorch_status executorch_text_options_init(executorch_text_options* options) {
  return guarded("executorch_text_options_init", [&] {
    if (!all_given("options", options)) return Error::InvalidArgument;
    *options = defaults();
    return Error::Ok;
  });
}

executorch_status executorch_text_generate(executorch_text* text, const char* prompt,
                                           const executorch_text_options* options,
                                           executorch_text_function on_text, void* user,
                                           executorch_text_result* result) {
  return guarded("executorch_text_generate", [&] {
    if (!all_given("text and prompt", text, prompt)) return Error::InvalidArgument;
    return generate(*text, prompt, options == nullptr ? defaults() : *options, on_text, user,
                    result);
  });
}

executorch_status executorch_text_stop(executorch_text* text) {
  return guarded("executorch_text_stop", [&] {
    if (!all_given("text", text)) return Error::InvalidArgument;
    text->session->stop();
    return Error::Ok;
  });
}
