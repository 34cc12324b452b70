#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/progress.h>
#include <executorch/extension/command/text_run.h>
#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/runner/grammar.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <sstream>

namespace executorch::extension::command {
namespace {

using llm::GenerationOptions;
using llm::GenerationResult;

/// The session that Ctrl-C stops; null: Ctrl-C ends the program.
std::atomic<llm::TextSession*> running{nullptr};

void stop_running(int) {
  if (llm::TextSession* const session = running.load()) {
    session->stop();
    return;
  }
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

/// While it lives, Ctrl-C stops the session.
struct Running {
  explicit Running(llm::TextSession& session) {
    running = &session;
    before = std::signal(SIGINT, stop_running);
  }
  ~Running() {
    running = nullptr;
    std::signal(SIGINT, before);
  }
  void (*before)(int);
};

std::pair<uint64_t, float> parse_bias(const std::string& text) {
  const size_t colon = text.find(':');
  uint64_t token = 0;
  float bias = 0;
  const char* const end = text.data() + text.size();
  if (colon != std::string::npos) {
    const char* const middle = text.data() + colon;
    const auto first = std::from_chars(text.data(), middle, token);
    const auto second = std::from_chars(middle + 1, end, bias);
    if (first.ec == std::errc() && first.ptr == middle && second.ec == std::errc() &&
        second.ptr == end) {
      return {token, bias};
    }
  }
  reject("--bias is '" + text + "', not TOKEN:NUMBER as in 50256:-5");
}

GenerationOptions generation_of(const TextOptions& options) {
  GenerationOptions generation;
  llm::SamplingOptions& sampling = generation.sampling;
  sampling.temperature = options.temperature;
  sampling.top_k = options.top_k;
  sampling.top_p = options.top_p;
  sampling.min_p = options.min_p;
  sampling.repetition_penalty = options.repetition_penalty;
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  for (const std::string& text : options.token_bias) {
    const auto bias = parse_bias(text);
    if (!sampling.token_bias.insert(bias).second) {
      reject("--bias is given twice for token " + std::to_string(bias.first));
    }
  }
  sampling.seed = options.seed.has_value() ? *options.seed : std::random_device()();
  const std::string complaint = check_sampling(sampling);
  if (!complaint.empty()) reject(complaint);
  generation.max_new_tokens = options.n_tokens;
  generation.stop_strings = options.stops;
  generation.stop_tokens.insert(options.stop_tokens.begin(), options.stop_tokens.end());
  generation.ignore_eos = options.ignore_eos;
  generation.window = options.window == "exact"  ? llm::Window::Exact
                      : options.window == "half" ? llm::Window::Half
                                                 : llm::Window::Stop;
  generation.n_draft = options.n_draft;
  return generation;
}

/// Checks options that name tokens: those outside of the vocabulary would never be met.
void check_tokens(const GenerationOptions& generation, const llm::TextEngine& engine) {
  const int64_t size = engine.vocabulary_size();
  const std::string complaint = check_sampling(generation.sampling, size);
  if (!complaint.empty()) fail("--bias: " + complaint);
  for (const uint64_t token : generation.stop_tokens) {
    if (token < static_cast<uint64_t>(size)) continue;
    fail("--stop-token is " + std::to_string(token) + ", which is not in the vocabulary of " +
         std::to_string(size) + " tokens");
  }
}

/// What --regex or --json-schema asks for; null: nothing.
std::shared_ptr<llm::Constraint> constraint_of(const TextOptions& options,
                                               const llm::TextEngine& engine) {
  const bool is_schema = !options.schema_file.empty();
  if (!is_schema && options.regex.empty()) return nullptr;
  const std::string text = is_schema ? read_file(options.schema_file) : options.regex;
  const auto n = static_cast<size_t>(std::max<int64_t>(engine.vocabulary_size(), 0));
  auto vocabulary = std::make_shared<const llm::Vocabulary>(
      llm::constraint_tokens(*engine.tokenizer(), n, engine.eos_ids()));
  std::string cause;
  auto constraint = llm::Constraint::compile(is_schema ? "json_schema" : "regex", text,
                                             std::move(vocabulary), engine.eos_ids(), cause);
  if (constraint == nullptr) {
    fail((is_schema ? "--json-schema " + options.schema_file : "--regex") + ": " + cause);
  }
  return constraint;
}

}  // namespace

TextRun::TextRun(const TextOptions& options)
    : options_(options), generation_(generation_of(options)) {
  use_threads(options.n_threads);
  const auto start = std::chrono::steady_clock::now();
  llm::EngineOptions engine;
  engine.model_path = options.model_path;
  engine.data_files = options.data_files;
  engine.tokenizer_path = options.tokenizer_path;
  engine.method_name = options.method;
  auto loaded = llm::TextEngine::load(engine);
  if (!loaded.ok()) {
    fail("cannot run " + options.model_path +
         " as a language model: " + runtime::to_string(loaded.error()));
  }
  engine_ = std::move(*loaded);
  check_tokens(generation_, *engine_);
  if (engine_->tokenizer() == nullptr) {
    fail(options.model_path + " has no tokenizer inside; give its file with --tokenizer");
  }
  constraint_ = constraint_of(options, *engine_);
  auto session = engine_->create_text_session();
  if (!session.ok()) {
    fail("cannot load a session of " + options.model_path + ": " +
         runtime::to_string(session.error()));
  }
  session_ = std::move(*session);
  load_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TextRun::~TextRun() = default;

std::vector<uint64_t> TextRun::encode(const std::string& text, int n_bos) const {
  auto tokens = engine_->encode(text, static_cast<int8_t>(n_bos));
  if (!tokens.ok())
    fail(std::string("cannot encode the text: ") + runtime::to_string(tokens.error()));
  return std::move(*tokens);
}

bool TextRun::has_room_for(size_t n_tokens) const {
  return n_tokens <= static_cast<uint64_t>(engine_->context_length()) ||
         generation_.window != llm::Window::Stop;
}

GenerationResult TextRun::run(std::vector<uint64_t> tokens, GenerationOptions generation,
                              const std::function<void(const std::string&)>& show) {
  const size_t n = tokens.size();
  if (n == 0) fail("the prompt is empty: there is nothing to continue");
  if (!has_room_for(n)) {
    fail("the prompt has " + std::to_string(n) + " tokens, and " + options_.model_path +
         " takes at most " + std::to_string(engine_->context_length()) +
         "; --window half or exact leaves out the first ones");
  }
  check(session_->set_text(std::move(tokens)),
        "give the prompt to " + options_.model_path + " (is the tokenizer its own?)");
  std::optional<Progress> progress;
  progress.emplace("prompt");
  generation.on_prefill = [&](int64_t done, int64_t total) {
    progress->show(static_cast<double>(done) / static_cast<double>(total));
  };
  generation.on_text = [&](const std::string& text) {
    progress.reset();  // before anything is printed
    if (show) show(text);
    return true;
  };
  if (constraint_ != nullptr) {
    generation.processors.push_back(std::make_shared<llm::ConstraintProcessor>(constraint_));
  }
  const Running stoppable(*session_);
  auto result = session_->generate(generation);
  if (!result.ok()) {
    fail("cannot run " + options_.model_path + ": " + runtime::to_string(result.error()));
  }
  return std::move(*result);
}

std::string read_all(std::istream& in) {
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string read_file(const std::string& path) {
  // Not std::ifstream, which does not say why it cannot read, for example that this is a folder.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) fail("cannot read " + path + ": " + std::strerror(errno));
  std::string text;
  char block[1 << 14];
  while (const size_t n = std::fread(block, 1, sizeof(block), file.get())) text.append(block, n);
  if (std::ferror(file.get()) != 0) fail("cannot read " + path + ": " + std::strerror(errno));
  return text;
}

void check_bos(int n_bos, const tokenizers::Tokenizer& tokenizer) {
  if (n_bos <= 0) return;
  const auto with = tokenizer.encode("", static_cast<int8_t>(n_bos));
  const auto without = tokenizer.encode("");
  if (!with.ok() || !without.ok() || with->size() > without->size()) return;
  fail("--bos is " + std::to_string(n_bos) +
       ", but the tokenizer names no beginning-of-text token: leave the option out, or name the "
       "token as bos_token in the tokenizer's tokenizer_config.json");
}

std::string template_text(const std::string& given) {
  const auto& names = llm::ChatTemplate::names();
  const bool is_jinja = given.find("{{") != given.npos || given.find("{%") != given.npos;
  const bool is_name = std::find(names.begin(), names.end(), given) != names.end();
  return is_jinja || is_name ? given : read_file(given);
}

std::optional<double> prefill_rate(const GenerationResult& result) {
  if (!(result.time_to_first_token_seconds > 0)) return std::nullopt;
  const auto n = static_cast<double>(result.n_prompt_tokens - result.n_reused_tokens);
  return n / result.time_to_first_token_seconds;
}

std::optional<double> decode_rate(const GenerationResult& result) {
  // The time to the first token counts as reading the prompt.
  if (result.tokens.size() < 2 || !(result.decode_seconds > 0)) return std::nullopt;
  return (static_cast<double>(result.tokens.size()) - 1) / result.decode_seconds;
}

devtools::Json TextRun::json(const GenerationResult& result) const {
  const auto or_null = [](std::optional<double> value) {
    return value.has_value() ? devtools::Json(*value) : devtools::Json();
  };
  const double first = result.time_to_first_token_seconds;
  return {{"text", result.text},
          {"tokens", result.tokens.size()},
          {"prompt_tokens", result.n_prompt_tokens},
          {"ended_by", to_string(result.finish_reason)},
          {"load_seconds", load_seconds_},
          {"time_to_first_token_seconds", first > 0 ? devtools::Json(first) : devtools::Json()},
          {"prefill_tokens_per_second", or_null(prefill_rate(result))},
          {"decode_tokens_per_second", or_null(decode_rate(result))},
          {"resident_mb", static_cast<double>(llm::get_rss_bytes()) / 1e6}};
}

}  // namespace executorch::extension::command
