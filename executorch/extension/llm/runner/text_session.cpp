#include <executorch/extension/llm/runner/text_generation.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/runner/text_session_state.h>
#include <executorch/extension/llm/sampler/util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <new>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

TextSession::TextSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextSession::~TextSession() = default;

namespace {

Error check_tokens(const std::vector<uint64_t>& tokens, int64_t vocabulary_size) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < static_cast<uint64_t>(vocabulary_size)) continue;
    ET_LOG(Error, "token %llu, number %zu of the text, is not in the program's vocabulary of %lld",
           static_cast<unsigned long long>(tokens[i]), i, static_cast<long long>(vocabulary_size));
    return Error::InvalidArgument;
  }
  return Error::Ok;
}

SamplingOptions options_of(const SamplingConfig& config) {
  SamplingOptions options;
  options.temperature = config.temperature < 0 ? 0 : config.temperature;
  options.top_k = config.top_k;
  options.top_p = config.top_p;
  options.seed = config.seed;
  return options;
}

}  // namespace

Error TextSession::set_text(std::vector<uint64_t> tokens) {
  ET_CHECK_OK_OR_RETURN_ERROR(check_tokens(tokens, state_->decoder.form().vocabulary_size));
  state_->text = std::move(tokens);
  state_->window_begin = 0;
  state_->steps.reset();
  state_->initial_sampling.reset();
  return Error::Ok;
}

const std::vector<uint64_t>& TextSession::text() const {
  return state_->text;
}

Error TextSession::prefill_tokens(const std::vector<uint64_t>& tokens,
                                  const SamplingConfig* initial_sampling) {
  ET_CHECK_OK_OR_RETURN_ERROR(check_tokens(tokens, state_->decoder.form().vocabulary_size));
  const size_t before = state_->text.size();
  try {
    state_->text.insert(state_->text.end(), tokens.begin(), tokens.end());
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
  state_->stop = false;
  state_->steps.reset();
  state_->initial_sampling.reset();
  if (initial_sampling != nullptr) state_->initial_sampling = *initial_sampling;
  if (state_->text.empty()) return Error::Ok;
  const Error prepared = prepare_steps();
  if (prepared != Error::Ok) {
    state_->text.resize(before);
    state_->steps.reset();
    state_->initial_sampling.reset();
  }
  return prepared;
}

/// Computes the text, so that decode_one() has only to choose.
Error TextSession::prepare_steps() {
  try {
    const Error begun = begin_steps();
    return begun == Error::Ok ? state_->steps->prepare() : begun;
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

/// What decode_one() goes on with.
Error TextSession::begin_steps() {
  auto steps = std::make_unique<TextGeneration>(*state_, GenerationOptions());
  const Error error = steps->begin();
  if (error == Error::Ok) state_->steps = std::move(steps);
  return error;
}

Result<DecodeResult> TextSession::decode_one(const SamplingConfig& sampling) {
  try {
    if (state_->steps == nullptr) {
      ET_CHECK_OK_OR_RETURN_ERROR(begin_steps());
    }
    const Error error =
        state_->steps->set_sampling(options_of(state_->initial_sampling.value_or(sampling)));
    state_->initial_sampling.reset();
    if (error != Error::Ok) return error;
    ET_ASSIGN_OR_RETURN(const TextGeneration::Step step, state_->steps->next());
    DecodeResult result;
    result.token_id = step.token;
    result.text_piece = step.text;
    result.is_eos = step.end == FinishReason::EndOfText;
    result.is_terminal = step.end.has_value();
    return result;
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

int64_t TextSession::position() const {
  return static_cast<int64_t>(state_->text.size());
}

Error TextSession::reset() {
  return set_text({});
}

void TextSession::stop() {
  state_->stop = true;
}

Error TextSession::score_tokens(const OnLogits& on_logits) {
  const std::vector<uint64_t>& text = state_->text;
  LanguageModel::Call call;
  call.stop = &state_->stop;
  std::vector<float> row;
  const auto most = static_cast<size_t>(state_->model->max_rows());
  for (size_t begin = 1, end; begin < text.size(); begin = end) {
    if (state_->stop) return Error::EndOfMethod;
    end = std::min(begin + most, text.size());
    const auto n = static_cast<int64_t>(end - begin);
    const auto logits = state_->model->logits({text.data(), end - 1}, n, call);
    if (!logits.ok()) return logits.error();
    const int64_t first = count_rows(*logits) - n;
    ET_CHECK_OR_RETURN_ERROR(first >= 0, InvalidProgram,
                             "score: the program gave %lld rows of logits, expected %lld at least",
                             static_cast<long long>(first + n), static_cast<long long>(n));
    for (size_t i = begin; i < end; ++i) {
      ET_CHECK_OK_OR_RETURN_ERROR(
          read_logits(*logits, first + static_cast<int64_t>(i - begin), row));
      if (!on_logits(i, {row.data(), row.size()})) return Error::EndOfMethod;
    }
  }
  return Error::Ok;
}

Error TextSession::score(const OnLogits& on_logits) {
  try {
    state_->stop = false;
    state_->steps.reset();
    state_->initial_sampling.reset();
    return score_tokens(on_logits);
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

Result<GenerationResult> TextSession::generate(const GenerationOptions& options) {
  try {
    state_->stop = false;
    state_->steps.reset();
    state_->initial_sampling.reset();
    TextGeneration generation(*state_, options);
    return generation.run();
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

}  // namespace executorch::extension::llm
