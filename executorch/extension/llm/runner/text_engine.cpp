#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/text_generation.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/runner/text_session_state.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;

struct TextEngine::State {
  EngineOptions options;
  std::unique_ptr<Module> base;
  std::shared_ptr<const ::tokenizers::Tokenizer> tokenizer;
  ProgramForm form;
  std::unordered_map<std::string, int64_t> metadata;
  std::unordered_set<uint64_t> eos_ids;
  std::vector<uint64_t> unknown;
  std::string chat_template;
  bool names_bos = false;
  int64_t bytes_per_session = 0;

  std::mutex mutex;
  /// What was loaded to look at the program, for the first session.
  std::unique_ptr<TextSession::State> first;

  Error load();
  Error load_tokenizer();
  Error read_memory_plan();
  Result<std::unique_ptr<TextSession::State>> make_session();
};

namespace {

Error failed(const std::string& path, const char* what, Error error) {
  ET_LOG(Error, "cannot %s %s: %s", what, path.c_str(), runtime::to_string(error));
  return error;
}

}  // namespace

Error TextEngine::State::load_tokenizer() {
  tokenizer = options.tokenizer;
  if (tokenizer != nullptr) return Error::Ok;
  if (!options.tokenizer_path.empty()) {
    tokenizer = llm::load_tokenizer(options.tokenizer_path);
    return tokenizer == nullptr ? Error::InvalidArgument : Error::Ok;
  }
  auto found = named_tokenizer(*base);
  if (!found.ok()) return failed(options.model_path, "read the tokenizer of", found.error());
  tokenizer = std::move(*found);
  return Error::Ok;
}

Error TextEngine::State::read_memory_plan() {
  ET_ASSIGN_OR_RETURN(const auto meta, base->method_meta(options.method_name));
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    ET_ASSIGN_OR_RETURN(const auto bytes, meta.memory_planned_buffer_size(i));
    if (bytes > std::numeric_limits<int64_t>::max() - bytes_per_session) break;
    bytes_per_session += bytes;
  }
  return Error::Ok;
}

/// A method of its own, over the weights of the base.
Result<std::unique_ptr<TextSession::State>> TextEngine::State::make_session() {
  // One module can read one file of external data only beside a program that it did not load.
  auto module =
      options.data_files.empty()
          ? std::make_unique<Module>(base->program())
          : std::make_unique<Module>(options.model_path, options.data_files, options.load_mode);
  auto session = std::make_unique<TextSession::State>(std::move(module), options.method_name);
  const Error error = session->decoder.load();
  if (error != Error::Ok) {
    return failed(options.model_path, ("load method '" + options.method_name + "' of").c_str(),
                  error);
  }
  return session;
}

Error TextEngine::State::load() {
  base = std::make_unique<Module>(options.model_path, options.data_files, options.load_mode);
  Error error = base->load();
  if (error != Error::Ok) return failed(options.model_path, "load", error);
  ET_CHECK_OK_OR_RETURN_ERROR(load_tokenizer());
  ET_ASSIGN_OR_RETURN(first, make_session());
  form = first->decoder.form();
  metadata = read_metadata(*base, form, tokenizer.get());
  eos_ids = read_eos_ids(*base, tokenizer.get());
  unknown = unknown_tokens(tokenizer.get(), form.vocabulary_size);
  chat_template = named_data(*base, "chat_template").value_or("");
  if (chat_template.empty() && tokenizer != nullptr) chat_template = tokenizer->chat_template();
  const auto names = base->method_names();
  names_bos = names.ok() && names->count(kBosId) != 0 && metadata.count(kBosId) != 0;
  return read_memory_plan();
}

TextEngine::TextEngine(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextEngine::~TextEngine() = default;

Result<std::unique_ptr<TextEngine>> TextEngine::load(const EngineOptions& options) {
  try {
    auto state = std::make_unique<State>();
    state->options = options;
    ET_CHECK_OK_OR_RETURN_ERROR(state->load());
    return std::unique_ptr<TextEngine>(new TextEngine(std::move(state)));
  } catch (const std::bad_alloc&) {
    return failed(options.model_path, "load", Error::MemoryAllocationFailed);
  }
}

Result<std::unique_ptr<TextSession>> TextEngine::create_text_session() {
  try {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    auto session = std::move(state_->first);
    if (session == nullptr) {
      ET_ASSIGN_OR_RETURN(session, state_->make_session());
    }
    session->model.emplace(session->decoder, state_->metadata.at(kMaxSeqLen));
    session->tokenizer = state_->tokenizer.get();
    session->eos_ids = &state_->eos_ids;
    session->unknown_tokens = &state_->unknown;
    session->context_length = context_length();
    return std::unique_ptr<TextSession>(new TextSession(std::move(session)));
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
}

Result<std::unique_ptr<LLMSession>> TextEngine::create_session() {
  ET_ASSIGN_OR_RETURN(auto session, create_text_session());
  return std::unique_ptr<LLMSession>(std::move(session));
}

LLMServingCapacity TextEngine::serving_capacity() const {
  LLMServingCapacity capacity;
  // Sessions share the weights however many there are.
  capacity.max_physical_sessions_without_weight_duplication = std::numeric_limits<int32_t>::max();
  capacity.estimated_bytes_per_session = state_->bytes_per_session;
  return capacity;
}

const std::unordered_map<std::string, int64_t>& TextEngine::metadata() const {
  return state_->metadata;
}

const ::tokenizers::Tokenizer* TextEngine::tokenizer() const {
  return state_->tokenizer.get();
}

const std::string& TextEngine::chat_template() const {
  return state_->chat_template;
}

int64_t TextEngine::context_length() const {
  return state_->metadata.at(kMaxContextLen);
}

int64_t TextEngine::vocabulary_size() const {
  return state_->form.vocabulary_size;
}

const std::unordered_set<uint64_t>& TextEngine::eos_ids() const {
  return state_->eos_ids;
}

Result<std::vector<uint64_t>> TextEngine::encode(const std::string& text, int8_t n_bos) const {
  ET_CHECK_OR_RETURN_ERROR(state_->tokenizer != nullptr, InvalidState,
                           "%s has no tokenizer inside, and none was given",
                           state_->options.model_path.c_str());
  auto tokens = state_->tokenizer->encode(text, n_bos, 0);
  ET_CHECK_OR_RETURN_ERROR(tokens.ok(), InvalidArgument, "the tokenizer cannot encode the text: %s",
                           ::tokenizers::to_string(tokens.error()));
  return std::move(*tokens);
}

int8_t TextEngine::default_n_bos() const {
  return state_->names_bos ? 1 : 0;
}

}  // namespace executorch::extension::llm
