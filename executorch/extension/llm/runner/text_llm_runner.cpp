#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/runner/util.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

TextLLMRunner::TextLLMRunner(std::unordered_map<std::string, int64_t> metadata,
                             std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                             std::unique_ptr<Module> module,
                             std::unique_ptr<TextDecoderRunner> text_decoder_runner,
                             std::unique_ptr<TextPrefiller> text_prefiller,
                             std::unique_ptr<IOManager> io_manager,
                             std::unique_ptr<TextTokenGenerator> text_token_generator,
                             std::unique_ptr<Stats> stats, float temperature,
                             std::unique_ptr<TextDecoderRunner> decode_text_decoder_runner)
    : metadata_(std::move(metadata)),
      tokenizer_(std::move(tokenizer)),
      module_(std::move(module)),
      stats_(std::move(stats)),
      io_manager_(std::move(io_manager)),
      text_decoder_runner_(std::move(text_decoder_runner)),
      decode_text_decoder_runner_(std::move(decode_text_decoder_runner)),
      text_prefiller_(std::move(text_prefiller)),
      text_token_generator_(std::move(text_token_generator)),
      temperature_(temperature) {}

bool TextLLMRunner::is_loaded() const {
  return text_prefiller_->is_loaded() && text_token_generator_->is_loaded();
}

Error TextLLMRunner::load() {
  if (is_loaded()) return Error::Ok;
  stats_->model_load_start_ms = time_in_ms();
  for (const Error error : {text_prefiller_->load(), text_token_generator_->load()}) {
    if (error != Error::Ok) return error;
  }
  if (io_manager_ != nullptr) {
    const auto& decoder =
        decode_text_decoder_runner_ ? decode_text_decoder_runner_ : text_decoder_runner_;
    const Error error =
        io_manager_->load(text_decoder_runner_->method_name(), decoder->method_name());
    if (error != Error::Ok) return error;
  }
  stats_->model_load_end_ms = time_in_ms();
  return Error::Ok;
}

int64_t TextLLMRunner::metadata(const char* name, int64_t otherwise) const {
  const auto found = metadata_.find(name);
  return found == metadata_.end() ? otherwise : found->second;
}

Result<std::vector<uint64_t>> TextLLMRunner::encode(const std::string& text, int32_t num_bos,
                                                    int32_t num_eos) const {
  return ET_UNWRAP_TOKENIZER(tokenizer_->encode(text, token_count(num_bos), token_count(num_eos)));
}

Error TextLLMRunner::append(const std::vector<uint64_t>& tokens) {
  const int64_t context = metadata(kMaxContextLen, metadata(kMaxSeqLen, 128));
  const size_t size = text_.size() + tokens.size();
  ET_CHECK_OR_RETURN_ERROR(size != 0, InvalidArgument,
                           "the prompt is empty, and there is no text to continue");
  ET_CHECK_OR_RETURN_ERROR(
      size <= static_cast<uint64_t>(std::max<int64_t>(0, context)), InvalidArgument,
      "the text has %zu tokens, with those of the prompt; the program takes %lld", size,
      static_cast<long long>(context));
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  return Error::Ok;
}

void TextLLMRunner::take_back(size_t before, size_t n_tokens) {
  if (text_.size() != before + n_tokens) return;
  text_.resize(before);
  n_seen_ = std::min(n_seen_, before);
}

Result<uint64_t> TextLLMRunner::read(size_t end, float temperature) {
  const bool has_caches = metadata(kUseKVCache, 1) != 0;
  const size_t begin = has_caches ? std::min(n_seen_, end - 1) : 0;
  std::vector<uint64_t> tokens(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                               text_.begin() + static_cast<std::ptrdiff_t>(end));
  auto position = static_cast<int64_t>(begin);
  Result<uint64_t> next = text_prefiller_->prefill(tokens, position, temperature);
  n_seen_ = next.ok() ? end : begin;
  return next;
}

Result<int64_t> TextLLMRunner::continue_text(
    std::optional<uint64_t> first, float temperature, const GenerationConfig& config,
    const std::function<void(const std::string&)>& token_callback) {
  const size_t size = text_.size(), last = size - 1;
  const int64_t context = metadata(kMaxContextLen, metadata(kMaxSeqLen, 128));
  const int32_t n_new = config.resolve_max_new_tokens(context, static_cast<int64_t>(text_.size()));
  text_token_generator_->set_ignore_eos(config.ignore_eos);
  const auto keep_chosen = [&](bool has_failed) {
    if (text_.size() != size) {  // by the callback; then nobody knows what the caches have
      n_seen_ = 0;
      return;
    }
    const auto& chosen = text_token_generator_->chosen_tokens();
    text_.insert(text_.end(), chosen.begin(), chosen.end());
    // The last one was not read.
    n_seen_ = std::min(text_.size() - 1, last + chosen.size());
    if (has_failed) n_seen_ = std::min(n_seen_, last);
  };
  try {
    Result<int64_t> n_generated = text_token_generator_->generate(
        text_, first, static_cast<int64_t>(last), n_new, temperature, token_callback);
    keep_chosen(!n_generated.ok());
    return n_generated;
  } catch (...) {  // what the callback threw
    keep_chosen(true);
    throw;
  }
}

Result<int64_t> TextLLMRunner::answer(
    const std::shared_ptr<LogitProcessor>& constraint, float temperature,
    const GenerationConfig& config, const std::function<void(const std::string&)>& token_callback) {
  const size_t last = text_.size() - 1;
  std::optional<uint64_t> first;
  if (metadata(kUseKVCache, 1) != 0 && n_seen_ < last) {
    // Logit processors see every choice: with them the generator reads the last token.
    const bool chooses =
        constraint == nullptr && text_token_generator_->num_logit_processors() == 0;
    ET_ASSIGN_OR_RETURN(const auto next, read(chooses ? last + 1 : last, temperature));
    if (chooses) first = next;
  }
  const ScopedLogitProcessor scoped(*text_token_generator_, constraint);
  if (text_token_generator_->is_stopped()) return int64_t{0};
  return continue_text(first, temperature, config, token_callback);
}

Error TextLLMRunner::generate(const std::string& prompt, const GenerationConfig& config,
                              std::function<void(const std::string&)> token_callback,
                              std::function<void(const Stats&)> stats_callback) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  const float temperature = temperature_ >= 0 ? temperature_ : config.temperature;
  ET_CHECK_OK_OR_RETURN_ERROR(check_temperature(temperature));
  text_token_generator_->forget_stop();
  stats_->reset();
  stats_->inference_start_ms = time_in_ms();
  ET_ASSIGN_OR_RETURN(
      const auto grammar,
      grammars_.processor(config, *tokenizer_, text_decoder_runner_->form().vocabulary_size,
                          text_token_generator_->eos_ids()));
  ET_CHECK_OR_RETURN_ERROR(!prompt.empty() || !text_.empty(), InvalidState,
                           "generate: there is no prompt, and no text to continue");
  ET_ASSIGN_OR_RETURN(const auto tokens,
                      prompt.empty() ? Result<std::vector<uint64_t>>(std::vector<uint64_t>())
                                     : encode(prompt, config.num_bos, config.num_eos));
  stats_->token_encode_end_ms = time_in_ms();
  const size_t before = text_.size();
  ET_CHECK_OK_OR_RETURN_ERROR(append(tokens));
  if (config.echo && !config.warming && token_callback && !prompt.empty()) token_callback(prompt);
  ET_CHECK_OR_RETURN_ERROR(!text_.empty(), InvalidState, "generate: the callback reset the text");

  if (config.warming) token_callback = {};
  const Result<int64_t> n_generated = answer(grammar, temperature, config, token_callback);
  if (!n_generated.ok()) {
    take_back(before, tokens.size());
    return n_generated.error();
  }
  stats_->inference_end_ms = time_in_ms();
  if (stats_->first_token_ms == 0) stats_->first_token_ms = stats_->inference_end_ms;
  stats_->prompt_eval_end_ms = stats_->first_token_ms;
  stats_->num_prompt_tokens = static_cast<int64_t>(tokens.size());
  stats_->num_generated_tokens = *n_generated;
  if (stats_callback && !config.warming) stats_callback(*stats_);
  return Error::Ok;
}

Result<uint64_t> TextLLMRunner::prefill(const std::vector<MultimodalInput>& inputs, int32_t num_bos,
                                        int32_t num_eos) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  std::vector<uint64_t> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const MultimodalInput& input = inputs[i];
    if (input.is_tokens()) {
      all.insert(all.end(), input.get_tokens().begin(), input.get_tokens().end());
      continue;
    }
    ET_CHECK_OR_RETURN_ERROR(input.is_text(), NotSupported,
                             "this runner reads text and tokens, not %s", input.type_name());
    ET_ASSIGN_OR_RETURN(const auto tokens, encode(input.get_text(), i == 0 ? num_bos : 0,
                                                  i + 1 == inputs.size() ? num_eos : 0));
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  const size_t before = text_.size();
  ET_CHECK_OK_OR_RETURN_ERROR(append(all));
  Result<uint64_t> next = read(text_.size());
  if (!next.ok()) take_back(before, all.size());
  return next;
}

Result<uint64_t> TextLLMRunner::prefill(const std::string& prompt, int32_t num_bos,
                                        int32_t num_eos) {
  return prefill(std::vector<MultimodalInput>{make_text_input(prompt)}, num_bos, num_eos);
}

Result<uint64_t> TextLLMRunner::prefill(const std::string& prompt, const GenerationConfig& config) {
  return prefill(prompt, config.num_bos, config.num_eos);
}

Error TextLLMRunner::warmup(const std::string& prompt, int32_t max_new_tokens) {
  GenerationConfig config;
  config.echo = false;
  config.warming = true;
  config.max_new_tokens = max_new_tokens;
  const Error error = generate(prompt, config);
  reset();
  return error;
}

void TextLLMRunner::reset() {
  text_.clear();
  n_seen_ = 0;
  stats_->reset();
  if (io_manager_ == nullptr) return;
  const auto& decoder =
      decode_text_decoder_runner_ ? decode_text_decoder_runner_ : text_decoder_runner_;
  const Error error =
      io_manager_->reset(text_decoder_runner_->method_name(), decoder->method_name());
  if (error != Error::Ok) ET_LOG(Error, "reset: %s", runtime::to_string(error));
}

void TextLLMRunner::stop() {
  text_token_generator_->stop();
}

}  // namespace executorch::extension::llm
