#include <executorch/extension/llm/runner/text_generation.h>
#include <executorch/extension/llm/sampler/util.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;
using runtime::Span;

TextSession::State::State(std::unique_ptr<Module> own_module, const std::string& method_name)
    : module(std::move(own_module)), decoder(module.get(), nullptr, method_name) {}

TextSession::State::~State() = default;

namespace {

/// Cuts a text to its former length at the end of the scope.
struct Shorten {
  std::vector<uint64_t>& text;
  size_t size;
  ~Shorten() { text.resize(size); }
};

/// The tokens that followed the last place where the text had its last few tokens before: at most
/// `n` of them. (Prompt lookup: text repeats itself.)
std::vector<uint64_t> repeated(const std::vector<uint64_t>& text, size_t n) {
  for (size_t length = 3; length >= 2; --length) {
    if (text.size() <= length) continue;
    const auto tail = text.end() - static_cast<std::ptrdiff_t>(length);
    const auto found = std::find_end(text.begin(), text.end() - 1, tail, text.end());
    if (found == text.end() - 1) continue;
    const auto next = found + static_cast<std::ptrdiff_t>(length);
    const auto count = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(n), text.end() - next);
    return {next, next + count};
  }
  return {};
}

}  // namespace

TextGeneration::TextGeneration(TextSession::State& session, GenerationOptions options)
    : session_(session),
      options_(std::move(options)),
      sampler_(options_.sampling),
      stream_(session.tokenizer, session.text, options_.stop_strings) {}

Error TextGeneration::begin() {
  const std::string complaint =
      check_sampling(options_.sampling, session_.decoder.form().vocabulary_size);
  ET_CHECK_OR_RETURN_ERROR(complaint.empty(), InvalidArgument, "generate: %s", complaint.c_str());
  ET_CHECK_OR_RETURN_ERROR(!session_.text.empty(), InvalidState,
                           "generate: the text is empty: there is nothing to continue");
  sampler_.set_prompt({session_.text.data(), session_.text.size()});
  return Error::Ok;
}

Error TextGeneration::set_sampling(SamplingOptions options) {
  const std::string complaint = check_sampling(options, session_.decoder.form().vocabulary_size);
  ET_CHECK_OR_RETURN_ERROR(complaint.empty(), InvalidArgument, "decode_one: %s", complaint.c_str());
  sampler_.set_options(std::move(options));
  return Error::Ok;
}

/// Moves the window, too, where the text outgrew the context.
std::optional<FinishReason> TextGeneration::end_before_choice() {
  if (session_.stop) return FinishReason::Stopped;
  if (options_.max_new_tokens >= 0 && n_chosen_ >= options_.max_new_tokens) {
    return FinishReason::Length;
  }
  const auto context = static_cast<size_t>(session_.context_length);
  const size_t size = session_.text.size();
  if (size - session_.window_begin <= context) return std::nullopt;
  switch (options_.window) {
    case Window::Stop:
      return FinishReason::ContextFull;
    case Window::Exact:
      session_.window_begin = size - context;
      break;
    case Window::Half:
      session_.window_begin = size - (context + 1) / 2;
      break;
  }
  rows_.reset();
  has_logits_ = false;
  return std::nullopt;
}

/// Tokens that may follow, to be checked with the next run. None where nothing is gained.
std::vector<uint64_t> TextGeneration::guess() const {
  const ProgramForm& form = session_.decoder.form();
  if (options_.n_draft <= 0 || n_chosen_ == 0 || !form.gives_all_positions) return {};
  const auto size = static_cast<int64_t>(session_.text.size() - session_.window_begin);
  int64_t n = std::min<int64_t>(options_.n_draft, session_.model->max_chunk() - 1);
  n = std::min(n, session_.context_length - size);
  if (options_.max_new_tokens >= 0) n = std::min(n, options_.max_new_tokens - n_chosen_ - 1);
  return n <= 0 ? std::vector<uint64_t>() : repeated(session_.text, static_cast<size_t>(n));
}

Error TextGeneration::compute_logits() {
  guessed_ = guess();
  n_right_ = 0;
  std::vector<uint64_t>& text = session_.text;
  const Shorten shorten{text, text.size()};
  text.insert(text.end(), guessed_.begin(), guessed_.end());
  LanguageModel::Call call;
  call.stop = &session_.stop;
  if (n_chosen_ == 0) call.on_progress = options_.on_prefill;
  const auto logits = session_.model->logits(
      {text.data() + session_.window_begin, text.size() - session_.window_begin},
      static_cast<int64_t>(guessed_.size()) + 1, call);
  if (!logits.ok()) return logits.error();
  ++n_runs_;
  row_ = count_rows(*logits) - static_cast<int64_t>(guessed_.size()) - 1;
  ET_CHECK_OR_RETURN_ERROR(row_ >= 0, InvalidProgram,
                           "generate: the program gave %lld rows of logits, expected %zu at least",
                           static_cast<long long>(count_rows(*logits)), guessed_.size() + 1);
  rows_ = *logits;
  return Error::Ok;
}

/// The logits after the last token: from the last run, if its guess was right, else from a new one.
Error TextGeneration::find_logits() {
  if (has_logits_) return Error::Ok;
  const bool was_guessed =
      rows_.has_value() && n_right_ < guessed_.size() && guessed_[n_right_] == session_.text.back();
  if (was_guessed) {
    ++n_right_;
    ++row_;
  } else {
    rows_.reset();
    ET_CHECK_OK_OR_RETURN_ERROR(compute_logits());
  }
  const Error error = read_logits(*rows_, row_, logits_);
  has_logits_ = error == Error::Ok;
  return error;
}

Error TextGeneration::prepare() {
  if (end_before_choice().has_value()) return Error::Ok;
  const Error error = find_logits();
  return error == Error::EndOfMethod && session_.stop ? Error::Ok : error;
}

/// Whether the text ends in front of `token`.
std::optional<FinishReason> TextGeneration::end_at(uint64_t token) const {
  if (!options_.ignore_eos && session_.eos_ids->count(token) != 0) return FinishReason::EndOfText;
  if (options_.stop_tokens.count(token) != 0) return FinishReason::StopToken;
  return std::nullopt;
}

Result<uint64_t> TextGeneration::choose() {
  has_logits_ = false;  // what follows writes over them
  for (const uint64_t token : *session_.unknown_tokens) {
    if (token < logits_.size() && !end_at(token).has_value()) {
      logits_[token] = -std::numeric_limits<float>::infinity();
    }
  }
  if (!options_.processors.empty()) {
    const auto tensor = from_blob(logits_.data(), {1, static_cast<aten::SizesType>(logits_.size())},
                                  aten::ScalarType::Float);
    for (const auto& processor : options_.processors) {
      ET_CHECK_OK_OR_RETURN_ERROR(processor->process(*tensor));
    }
  }
  Result<uint64_t> token = sampler_.sample({logits_.data(), logits_.size()});
  if (!token.ok()) {
    // NaN goes from one token to others in the caches: what is kept of the text is not used again.
    session_.model->reset();
    return token;
  }
  for (const auto& processor : options_.processors) {
    ET_CHECK_OK_OR_RETURN_ERROR(processor->accept(*token));
  }
  return token;
}

/// Adds what was held back to the last step. A stop string in it is why the text ends.
void TextGeneration::finish_text(Step& step) {
  step.text += stream_.finish();
  if (stream_.is_stopped()) step.end = FinishReason::StopString;
}

/// What the chosen token does.
Result<TextGeneration::Step> TextGeneration::take(uint64_t token) {
  Step step;
  step.token = token;
  step.end = end_at(token);
  if (step.end.has_value()) {
    finish_text(step);
    return step;
  }
  session_.text.push_back(token);
  sampler_.accept(token);
  ++n_chosen_;
  Result<std::string> text = stream_.add(token);
  if (!text.ok()) return text.error();
  step.text = std::move(*text);
  const auto is_complete = [](const auto& processor) { return processor->is_complete(); };
  if (stream_.is_stopped()) {
    step.end = FinishReason::StopString;
  } else if (std::any_of(options_.processors.begin(), options_.processors.end(), is_complete)) {
    step.end = FinishReason::Complete;
    finish_text(step);
  }
  return step;
}

Result<TextGeneration::Step> TextGeneration::next() {
  Step step;
  step.end = end_before_choice();
  if (!step.end.has_value()) {
    const Error error = find_logits();
    if (error == Error::EndOfMethod && session_.stop) {
      step.end = FinishReason::Stopped;
    } else if (error != Error::Ok) {
      return error;
    }
  }
  if (step.end.has_value()) {
    finish_text(step);
    return step;
  }
  ET_ASSIGN_OR_RETURN(const uint64_t token, choose());
  return take(token);
}

/// False: whoever reads it wants no more.
bool TextGeneration::deliver(const std::string& text, GenerationResult& result) const {
  result.text += text;
  return text.empty() || !options_.on_text || options_.on_text(text);
}

Result<GenerationResult> TextGeneration::run() {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto start = Clock::now();
  ET_CHECK_OK_OR_RETURN_ERROR(begin());
  GenerationResult result;
  result.n_prompt_tokens = static_cast<int64_t>(session_.text.size());
  result.n_reused_tokens =
      std::min(session_.model->known_tokens({session_.text.data(), session_.text.size()}),
               result.n_prompt_tokens - 1);
  auto first = start;
  for (;;) {
    const int64_t n_before = n_chosen_;
    ET_ASSIGN_OR_RETURN(Step step, next());
    if (n_before == 0) {
      // For these ends no token was chosen, and nothing need have been computed.
      const bool is_chosen = step.end != FinishReason::Length &&
                             step.end != FinishReason::ContextFull &&
                             step.end != FinishReason::Stopped;
      if (is_chosen) result.time_to_first_token_seconds = since(start);
      first = Clock::now();
      n_runs_ = 0;
    }
    if (n_chosen_ > n_before) {
      result.tokens.push_back(step.token);
      if (options_.on_token) options_.on_token(step.token);
    }
    bool wants_more = deliver(step.text, result);
    if (!step.end.has_value() && !wants_more) step.end = FinishReason::Stopped;
    if (!step.end.has_value()) continue;
    result.finish_reason = *step.end;
    result.decode_seconds = since(first);
    result.n_decode_runs = n_runs_;
    return result;
  }
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::Length:
      return "length";
    case FinishReason::EndOfText:
      return "end_of_text";
    case FinishReason::StopToken:
      return "stop_token";
    case FinishReason::StopString:
      return "stop_string";
    case FinishReason::Complete:
      return "complete";
    case FinishReason::ContextFull:
      return "context_full";
    case FinishReason::Stopped:
      return "stopped";
  }
  return "";
}

}  // namespace executorch::extension::llm
