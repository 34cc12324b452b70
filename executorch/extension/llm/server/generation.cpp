// Answers that the model makes.

#include <executorch/extension/llm/server/chat_server.h>
#include <executorch/extension/llm/server/logprobs.h>

#include <algorithm>
#include <ctime>
#include <random>

namespace executorch::extension::llm::server {

using runtime::Error;

/// A request while it is answered.
struct ChatServer::Generation {
  Generation(ChatServer& server, const HttpRequest& http, HttpConnection& client, ApiRequest asked)
      : request(std::move(asked)),
        keep_alive(http.keep_alive),
        connection(client),
        began(Clock::now()),
        deadline(began + server.options_.timeout),
        answer(request, server.model_, std::to_string(++server.n_answers_),
               server.options_.model_name, std::time(nullptr)) {}

  bool is_late() const { return Clock::now() >= deadline; }
  bool is_gone() {
    gone = gone || connection.is_gone();
    return gone;
  }
  std::vector<TokenLogprob> take_logprobs() {
    return recorder == nullptr ? std::vector<TokenLogprob>() : recorder->take(n_tokens);
  }
  /// The protocol's name of what ended the choice.
  const char* reason_of(const GenerationResult& result) const {
    const std::string_view reason = finish_reason(result.finish_reason);
    return reason == "stop" && reader && reader->count() > 0 ? "tool_calls" : reason.data();
  }

  const ApiRequest request;
  const bool keep_alive;
  HttpConnection& connection;
  const Clock::time_point began, deadline;
  ApiAnswer answer;
  std::vector<uint64_t> prompt;
  /// What the answer begins with: the prompt, if it is asked for.
  std::string echo;
  GenerationOptions options;
  std::shared_ptr<LogprobRecorder> recorder;
  /// Finds the calls of functions in the choice, if there are functions.
  std::optional<ToolCallReader> reader;
  Usage usage;
  /// Tokens of the choice so far. The recorder knows of one more, which is not part of the answer,
  /// where that one ends it.
  size_t n_tokens = 0;
  /// Whether the client closed the connection or no longer reads.
  bool gone = false;
};

namespace {

uint64_t random_seed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

bool is_json(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type == "application/json" || type == "application/json ";
}

ApiError error_of(Error error, const ResponseFormat& format) {
  if (error == Error::OutOfResources) {
    return {400, "the format of the answer has too many states", format.param, "too_complex"};
  }
  return {500, std::string("the model failed: ") + runtime::to_string(error), "", "model_failed"};
}

}  // namespace

bool ChatServer::generate(const HttpRequest& http, HttpConnection& connection, bool chat) {
  // Pages of other sites can send anything else without being asked first.
  if (!is_json(http.header("content-type"))) {
    throw ApiError{415, "Content-Type: application/json is expected", "", ""};
  }
  Generation generation(
      *this, http, connection,
      parse_request(http.body, chat, options_.model_name, model_.vocabulary_size()));
  prepare(generation);
  ++metrics_.n_running;
  struct Running {
    Metrics& metrics;
    ~Running() { --metrics.n_running; }
  } running{metrics_};
  if (generation.request.stream) {
    const SessionPool::Lease text = take_session(generation);
    try {
      return answer_in_parts(generation, *text);
    } catch (const std::exception&) {
      return false;  // the answer has begun; that it breaks off says the rest
    }
  }
  HttpResponse response;
  {
    // Not while it is sent: a slow client would keep it from others.
    const SessionPool::Lease text = take_session(generation);
    response.body = whole_answer(generation, *text);
  }
  metrics_.count_response(200);
  return !generation.gone && connection.send(response, generation.keep_alive);
}

/// The text of a request; an error of the client's if the template refuses the conversation.
ChatPrompt ChatServer::prompt_of(const ApiRequest& request) const {
  if (!request.chat) return {request.prompt, false};
  std::string cause;
  const ChatTemplate& chat_template = model_.chat_template();
  if (!request.tools.empty() && !chat_template.takes_tools()) {
    throw ApiError{
        400,
        "'tools': the model's chat template (" + chat_template.name() + ") does not take tools",
        "tools", "unsupported_value"};
  }
  auto prompt = chat_template.render(request.messages, cause, request.tools);
  if (prompt.has_value()) return std::move(*prompt);
  throw ApiError{400, "the chat template refuses these messages: " + cause, "messages",
                 "invalid_value"};
}

void ChatServer::prepare(Generation& generation) {
  const ApiRequest& request = generation.request;
  const ChatTemplate& chat_template = model_.chat_template();
  if (request.prompt_tokens.empty()) {
    const ChatPrompt prompt = prompt_of(request);
    auto tokens = model_.encode(
        prompt.text, request.chat ? int8_t{prompt.begins_with_bos} : model_.default_n_bos());
    if (!tokens.ok()) throw ApiError{400, "the prompt cannot be encoded", "", "invalid_value"};
    generation.prompt = std::move(*tokens);
  } else {
    generation.prompt = request.prompt_tokens;
  }
  check_prompt(generation);
  if (request.echo) generation.echo = request.prompt;
  if (request.echo && request.prompt.empty()) {
    for (const uint64_t token : request.prompt_tokens) generation.echo += model_.decode(token);
  }
  GenerationOptions& options = generation.options;
  options.sampling = request.sampling;
  options.max_new_tokens = model_.context_length() - static_cast<int64_t>(generation.prompt.size());
  if (options_.max_tokens > 0) {
    options.max_new_tokens = std::min(options.max_new_tokens, options_.max_tokens);
  }
  if (request.max_tokens) {
    options.max_new_tokens = std::min(options.max_new_tokens, *request.max_tokens);
  }
  options.stop_strings = request.stop;
  if (request.chat) {
    for (const std::string& stop : chat_template.stop_strings()) {
      options.stop_strings.push_back(stop);
    }
    // Special tokens, as stop strings of templates often are, give no text.
    if (!request.ignore_eos) options.stop_tokens = model_.end_tokens();
  }
  options.ignore_eos = request.ignore_eos;
  begin_choice(generation, 0);  // here: a format that cannot be used is told instead of an answer
}

/// Makes what each of the choices needs anew. A seed that is given is that of the first choice.
void ChatServer::begin_choice(Generation& generation, int index) {
  const ApiRequest& request = generation.request;
  GenerationOptions& options = generation.options;
  options.sampling.seed =
      request.seed_given ? request.sampling.seed + static_cast<uint64_t>(index) : random_seed();
  options.processors.clear();
  generation.n_tokens = 0;
  generation.answer.begin_choice(index);
  if (!request.tools.empty()) generation.reader.emplace(request.tools);
  if (!request.format.type.empty()) {
    options.processors.push_back(
        std::make_shared<ConstraintProcessor>(constraints_.get(request.format)));
  }
  if (request.n_logprobs >= 0) {
    generation.recorder = std::make_shared<LogprobRecorder>(request.n_logprobs);
    options.processors.push_back(generation.recorder);
  }
}

/// Whether another choice is to be made, by the same session, which knows the prompt.
bool ChatServer::has_next(Generation& generation, int index) const {
  return index < generation.request.n_choices &&
         (index == 0 || (!generation.is_gone() && !generation.is_late() && !pool_.is_stopped()));
}

/// Whether the model can continue the prompt.
void ChatServer::check_prompt(const Generation& generation) const {
  const int64_t n_prompt = static_cast<int64_t>(generation.prompt.size());
  const char* param = generation.request.chat ? "messages" : "prompt";
  if (n_prompt == 0) throw ApiError{400, "the prompt is empty", param, "invalid_value"};
  if (n_prompt >= model_.context_length()) {
    throw ApiError{400,
                   "the prompt has " + std::to_string(n_prompt) +
                       " tokens; with the answer at most " +
                       std::to_string(model_.context_length()) + " are possible",
                   param, "context_length_exceeded"};
  }
  // Vocabularies of tokenizers may be larger than that of the model.
  for (const uint64_t token : generation.prompt) {
    if (token < static_cast<uint64_t>(model_.vocabulary_size())) continue;
    throw ApiError{400,
                   "the prompt has token " + std::to_string(token) +
                       ", which is not in the model's vocabulary of " +
                       std::to_string(model_.vocabulary_size()) + " tokens",
                   param, "invalid_value"};
  }
}

SessionPool::Lease ChatServer::take_session(Generation& generation) {
  auto answer = pool_.take(generation.prompt, generation.deadline,
                           [&generation] { return generation.is_gone(); });
  if (answer.lease != nullptr) return std::move(*answer.lease);
  switch (answer.refusal) {
    case SessionPool::Refusal::Busy:
      throw ApiError{503, "too many requests wait already", "", "overloaded"};
    case SessionPool::Refusal::TimedOut:
      throw ApiError{503, "all sessions were busy until the time limit of the request", "",
                     "overloaded"};
    case SessionPool::Refusal::Cancelled:
      if (generation.gone) ++metrics_.n_cancelled;
      throw ApiError{503, "the server is being stopped", "", "stopped"};
    default:
      throw ApiError{500, "another session could not be created", "", "out_of_memory"};
  }
}

/// Generates an answer. Stops early if the client is gone or the time is over.
runtime::Result<GenerationResult> ChatServer::run_generation(Generation& generation,
                                                             ServedText& text) {
  const auto check = [&generation, &text] {
    if (generation.is_gone() || generation.is_late()) text.stop();
  };
  generation.options.on_token = [check, &generation](uint64_t) {
    ++generation.n_tokens;
    check();
  };
  generation.options.on_prefill = [check](int64_t, int64_t) { check(); };
  auto result = text.generate(generation.prompt, generation.options);
  if (generation.gone) ++metrics_.n_cancelled;
  return result;
}

/// Adds a choice to the usage, which has the prompt once.
void ChatServer::add(Generation& generation, const GenerationResult& result) {
  Usage& usage = generation.usage;
  if (usage.n_prompt == 0) {
    usage.n_prompt = static_cast<int64_t>(generation.prompt.size());
    usage.n_cached = result.n_reused_tokens;
    metrics_.add_first_token(result.time_to_first_token_seconds);
  }
  usage.n_completion += static_cast<int64_t>(result.tokens.size());
}

void ChatServer::count(const Generation& generation) {
  const Usage& usage = generation.usage;
  metrics_.n_prompt_tokens += usage.n_prompt;
  metrics_.n_cached_tokens += usage.n_cached;
  metrics_.n_generated_tokens += usage.n_completion;
  metrics_.add_generation(std::chrono::duration<double>(Clock::now() - generation.began).count());
}

std::string ChatServer::whole_answer(Generation& generation, ServedText& text) {
  for (int i = 0; has_next(generation, i); ++i) {
    if (i > 0) begin_choice(generation, i);
    const auto result = run_generation(generation, text);
    if (!result.ok()) throw error_of(result.error(), generation.request.format);
    add(generation, *result);
    std::string said = generation.echo + result->text;
    std::vector<ToolCall> calls;
    if (auto& reader = generation.reader) {
      said = reader->add(said);
      said += reader->finish();
      calls = reader->take_calls();
    }
    generation.answer.add(said, generation.reason_of(*result), generation.take_logprobs(), calls);
  }
  count(generation);
  return generation.answer.whole(generation.usage);
}

bool ChatServer::answer_in_parts(Generation& generation, ServedText& text) {
  HttpConnection& connection = generation.connection;
  ApiAnswer& answer = generation.answer;
  HttpResponse response;
  response.content_type = "text/event-stream; charset=utf-8";
  metrics_.count_response(200);
  const auto send = [&](const std::string& data) {
    generation.gone = generation.gone || !connection.send_part("data: " + data + "\n\n");
    return !generation.gone;
  };
  generation.gone = !connection.begin_stream(response, generation.keep_alive);
  // Sends what is certainly text, and calls that are complete.
  const auto send_text = [&](const std::string& part, bool ends) {
    auto& reader = generation.reader;
    if (!reader) return ends || send(answer.part(part, generation.take_logprobs()));
    std::string said = reader->add(part);
    if (ends) said += reader->finish();
    const std::vector<ToolCall> calls = reader->take_calls();
    if (!said.empty()) send(answer.part(said, generation.take_logprobs()));
    if (!calls.empty()) send(answer.calls_part(calls, reader->count() - calls.size()));
    return !generation.gone;
  };
  generation.options.on_text = [&](const std::string& part) { return send_text(part, false); };
  Error error = Error::Ok;
  for (int i = 0; has_next(generation, i); ++i) {
    if (i > 0) begin_choice(generation, i);
    if (generation.request.chat) send(answer.first());
    if (!generation.echo.empty()) send(answer.part(generation.echo, {}));
    const auto result = run_generation(generation, text);
    error = result.error();
    if (error != Error::Ok) break;
    add(generation, *result);
    send_text("", true);
    const auto rest = generation.take_logprobs();
    if (!rest.empty()) send(answer.part("", rest));
    send(answer.last(generation.reason_of(*result)));
  }
  if (error != Error::Ok) {
    send(error_body(error_of(error, generation.request.format)));
  } else {
    count(generation);
    if (generation.request.include_usage) send(answer.usage_part(generation.usage));
  }
  send("[DONE]");
  return !generation.gone && connection.end_stream();
}

}  // namespace executorch::extension::llm::server
