#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>
#include <executorch/extension/llm/runner/util.h>

#include <limits>
#include <utility>

namespace executorch::extension::llm {

MultimodalRunner::MultimodalRunner(std::unordered_map<std::string, int64_t> metadata,
                                   std::unique_ptr<::tokenizers::Tokenizer> tokenizer,
                                   std::unique_ptr<Module> module,
                                   std::unique_ptr<MultimodalDecoderRunner> text_decoder_runner,
                                   std::unique_ptr<MultimodalPrefiller> multimodal_prefiller,
                                   std::unique_ptr<IOManager> io_manager,
                                   std::unique_ptr<TextTokenGenerator> text_token_generator,
                                   std::unique_ptr<Stats> stats)
    : metadata_(std::move(metadata)),
      tokenizer_(std::move(tokenizer)),
      module_(std::move(module)),
      stats_(std::move(stats)),
      io_manager_(std::move(io_manager)),
      text_decoder_runner_(std::move(text_decoder_runner)),
      multimodal_prefiller_(std::move(multimodal_prefiller)),
      text_token_generator_(std::move(text_token_generator)) {}

bool MultimodalRunner::is_loaded() const {
  return multimodal_prefiller_->is_method_loaded() && text_token_generator_->is_loaded();
}

Error MultimodalRunner::load() {
  if (is_loaded()) return Error::Ok;
  stats_->model_load_start_ms = time_in_ms();
  for (const Error error : {multimodal_prefiller_->load(), text_token_generator_->load()}) {
    if (error != Error::Ok) return error;
  }
  if (io_manager_ != nullptr) {
    const std::string& method = text_decoder_runner_->method_name();
    ET_CHECK_OK_OR_RETURN_ERROR(io_manager_->load(method, method));
  }
  stats_->model_load_end_ms = time_in_ms();
  return Error::Ok;
}

/// What a text would begin with, before an image or sound.
Error MultimodalRunner::read_bos(int32_t num_bos) {
  const auto bos = metadata_.find(kBosId);
  ET_CHECK_OR_RETURN_ERROR(
      bos != metadata_.end(), InvalidArgument,
      "num_bos is %d, and neither the program (%s) nor the tokenizer names a token",
      static_cast<int>(num_bos), kBosId);
  const std::vector<uint64_t> tokens(static_cast<size_t>(token_count(num_bos)),
                                     static_cast<uint64_t>(bos->second));
  return multimodal_prefiller_->prefill(make_token_input(tokens), position_).error();
}

Result<uint64_t> MultimodalRunner::read(const std::vector<MultimodalInput>& inputs, int32_t num_bos,
                                        int32_t num_eos) {
  if (unread_.has_value()) {
    const auto next = multimodal_prefiller_->prefill(make_token_input({*unread_}), position_);
    if (!next.ok()) return next.error();
  }
  std::optional<uint64_t> likeliest;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const MultimodalInput& input = inputs[i];
    const int32_t eos = i + 1 == inputs.size() ? num_eos : 0;
    int32_t bos = position_ == 0 ? num_bos : 0;
    const std::string* const text = input.try_get_text();
    if (text != nullptr && text->empty() && bos <= 0 && eos <= 0) continue;
    if (bos > 0 && text == nullptr && !input.is_tokens()) {
      ET_CHECK_OK_OR_RETURN_ERROR(read_bos(bos));
      bos = 0;
    }
    ET_ASSIGN_OR_RETURN(likeliest, multimodal_prefiller_->prefill(input, position_, bos, eos));
  }
  if (likeliest.has_value()) return *likeliest;
  ET_LOG(Error, "the prompt is empty");
  return Error::InvalidArgument;
}

Result<uint64_t> MultimodalRunner::prefill(const std::vector<MultimodalInput>& inputs,
                                           int32_t num_bos, int32_t num_eos) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  const int64_t before = position_;
  Result<uint64_t> next = read(inputs, num_bos, num_eos);
  if (!next.ok()) {
    position_ = before;
    return next;
  }
  unread_.reset();
  likeliest_ = *next;
  return next;
}

Result<uint64_t> MultimodalRunner::prefill(const std::string& prompt, int32_t num_bos,
                                           int32_t num_eos) {
  return prefill(std::vector<MultimodalInput>{make_text_input(prompt)}, num_bos, num_eos);
}

/// The token after what was read; none if the generator has to read one first.
Result<std::optional<uint64_t>> MultimodalRunner::first_token(float temperature) {
  if (!likeliest_.has_value()) return std::optional<uint64_t>();
  const auto& logits = multimodal_prefiller_->last_logits();
  if (!logits.has_value()) return likeliest_;  // of a prefiller that keeps none
  ET_ASSIGN_OR_RETURN(const uint64_t token, text_token_generator_->choose(*logits, temperature));
  return std::optional<uint64_t>(token);
}

Error MultimodalRunner::continue_text(
    const GenerationConfig& config, const std::function<void(const std::string&)>& token_callback) {
  const auto context = metadata_.find(kMaxContextLen);
  const int64_t context_length =
      context == metadata_.end() ? std::numeric_limits<int64_t>::max() : context->second;
  const int64_t n_occupied = position_ + (unread_.has_value() ? 1 : 0);
  const int32_t n_new = config.resolve_max_new_tokens(context_length, n_occupied);
  ET_CHECK_OR_RETURN_ERROR(
      n_new >= 1, InvalidArgument,
      "there is no room for a new token: the text has %lld, the program takes %lld; "
      "max_new_tokens is %d, seq_len %d",
      static_cast<long long>(n_occupied), static_cast<long long>(context_length),
      static_cast<int>(config.max_new_tokens), static_cast<int>(config.seq_len));
  const auto first = first_token(config.temperature);
  if (!first.ok()) return first.error();
  text_token_generator_->set_ignore_eos(config.ignore_eos);
  // The generator stands at its last token, which it has not read if there is no first one.
  const bool has_first = first->has_value();
  ET_CHECK_OR_RETURN_ERROR(has_first || unread_.has_value(), InvalidState,
                           "generate: the callback reset the text");
  const int64_t before = position_;
  const auto keep_chosen = [&] {
    const auto& chosen = text_token_generator_->chosen_tokens();
    if (chosen.empty() || position_ != before) return;  // or the callback began another text
    position_ += static_cast<int64_t>(chosen.size()) - (has_first ? 1 : 0);
    unread_ = chosen.back();
    likeliest_.reset();
  };
  try {
    const auto n_generated = text_token_generator_->generate(
        {has_first ? **first : *unread_}, *first, has_first ? position_ - 1 : position_, n_new,
        config.temperature, token_callback);
    keep_chosen();
    if (!n_generated.ok()) return n_generated.error();
    stats_->num_generated_tokens = *n_generated;
    return Error::Ok;
  } catch (...) {  // what the callback threw
    keep_chosen();
    throw;
  }
}

Error MultimodalRunner::generate(const std::string& prompt, const GenerationConfig& config,
                                 std::function<void(const std::string&)> token_callback,
                                 std::function<void(const Stats&)> stats_callback) {
  std::vector<MultimodalInput> inputs;
  if (!prompt.empty()) inputs.push_back(make_text_input(prompt));
  return generate(inputs, config, std::move(token_callback), std::move(stats_callback));
}

Error MultimodalRunner::generate(const std::vector<MultimodalInput>& inputs,
                                 const GenerationConfig& config,
                                 std::function<void(const std::string&)> token_callback,
                                 std::function<void(const Stats&)> stats_callback) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  ET_CHECK_OR_RETURN_ERROR(!inputs.empty() || unread_.has_value() || likeliest_.has_value(),
                           InvalidState,
                           "generate: there are no inputs, and nothing was read before");
  ET_CHECK_OK_OR_RETURN_ERROR(check_temperature(config.temperature));
  text_token_generator_->forget_stop();
  stats_->reset();
  stats_->inference_start_ms = time_in_ms();
  ET_ASSIGN_OR_RETURN(
      const auto grammar,
      grammars_.processor(config, *tokenizer_, text_decoder_runner_->form().vocabulary_size,
                          text_token_generator_->eos_ids()));
  if (config.warming) token_callback = {};
  if (!inputs.empty()) {
    ET_CHECK_OK_OR_RETURN_ERROR(prefill(inputs, config.num_bos, config.num_eos).error());
    const std::string* const text = inputs.back().try_get_text();
    if (config.echo && token_callback && text != nullptr && !text->empty()) token_callback(*text);
  }
  stats_->token_encode_end_ms = stats_->prompt_eval_end_ms = time_in_ms();
  stats_->num_prompt_tokens = position_;
  const ScopedLogitProcessor constraint(*text_token_generator_, grammar);
  if (!text_token_generator_->is_stopped()) {
    ET_CHECK_OK_OR_RETURN_ERROR(continue_text(config, token_callback));
  }
  stats_->inference_end_ms = time_in_ms();
  if (stats_->first_token_ms == 0) stats_->first_token_ms = stats_->inference_end_ms;
  if (stats_callback && !config.warming) stats_callback(*stats_);
  return Error::Ok;
}

void MultimodalRunner::stop() {
  text_token_generator_->stop();
}

void MultimodalRunner::reset() {
  position_ = 0;
  unread_.reset();
  likeliest_.reset();
  stats_->reset();
  if (io_manager_ == nullptr) return;
  const std::string& method = text_decoder_runner_->method_name();
  const Error error = io_manager_->reset(method, method);
  if (error != Error::Ok) ET_LOG(Error, "reset: %s", runtime::to_string(error));
}

}  // namespace executorch::extension::llm
