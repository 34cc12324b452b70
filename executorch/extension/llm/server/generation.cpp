// Answers that the model makes.

#include <executorch/extension/llm/server/chat_server.h>
#include <executorch/extension/llm/server/logprobs.h>

#include <algorithm>
#include <ctime>
#include <limits>
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
  bool scores_prompt() const { return request.echo && request.n_logprobs >= 0; }
  /// The number, among all of the answer, of a choice of the prompt that is continued now.
  int index_of(int choice) const {
    return static_cast<int>(at_prompt) * request.n_choices + choice;
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
  std::vector<std::vector<uint64_t>> prompts;
  /// The prompt that is continued now.
  size_t at_prompt = 0;
  const std::vector<uint64_t>& prompt() const { return prompts[at_prompt]; }
  /// What its choices begin with: the prompt, if it is asked for, and how likely its tokens are.
  std::string echo;
  std::vector<TokenLogprob> echoed;
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

/// The most probabilities of prompts in one answer, each in the choices of its prompt.
constexpr size_t kMaxEchoed = size_t{1} << 21;

double mean_logprob(const std::vector<TokenLogprob>& tokens) {
  double sum = 0;
  for (const TokenLogprob& one : tokens) sum += one.logprob;
  return tokens.empty() ? -std::numeric_limits<double>::infinity()
                        : sum / static_cast<double>(tokens.size());
}

ApiError error_of(Error error, const ResponseFormat& format) {
  if (error == Error::EndOfMethod) {
    return {503, "the request ran out of time, or the server is being stopped", "", "overloaded"};
  }
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
  std::string cause;
  const ChatTemplate& chat_template = model_.chat_template();
  const bool has_tools = !request.tools.empty();
  if ((has_tools || request.has_calls) && !chat_template.takes_tools()) {
    const std::string param = has_tools ? "tools" : "messages";
    throw ApiError{400,
                   "'" + param + "': the model's chat template (" + chat_template.name() +
                       ") does not take tools" + (has_tools ? "" : ", nor calls and their results"),
                   param, "unsupported_value"};
  }
  auto prompt =
      chat_template.render(request.messages, cause, request.tools, request.template_variables);
  if (prompt.has_value()) return std::move(*prompt);
  throw ApiError{400, "the chat template refuses these messages: " + cause, "messages",
                 "invalid_value"};
}

void ChatServer::prepare(Generation& generation) {
  const ApiRequest& request = generation.request;
  const auto add_prompt = [&](const std::string& text, int8_t n_bos) {
    auto tokens = model_.encode(text, n_bos);
    if (!tokens.ok()) throw ApiError{400, "the prompt cannot be encoded", "", "invalid_value"};
    generation.prompts.push_back(std::move(*tokens));
  };
  if (request.chat) {
    const ChatPrompt prompt = prompt_of(request);
    add_prompt(prompt.text, int8_t{prompt.begins_with_bos});
  }
  for (const Prompt& prompt : request.prompts) {
    if (prompt.tokens.empty()) {
      add_prompt(prompt.text, model_.default_n_bos());
    } else {
      generation.prompts.push_back(prompt.tokens);
    }
  }
  size_t n_tokens = 0;
  for (const auto& prompt : generation.prompts) {
    check_prompt(prompt, request);
    n_tokens += prompt.size();
  }
  const auto n_each = static_cast<size_t>(request.n_choices * (1 + request.n_logprobs));
  if (generation.scores_prompt() && n_tokens > kMaxEchoed / n_each) {
    throw ApiError{400, "'echo': the prompts have too many tokens to tell the probabilities of all",
                   "echo", "unsupported_value"};
  }
  GenerationOptions& options = generation.options;
  options.sampling = request.sampling;
  options.stop_strings = request.stop;
  if (request.chat) {
    const ChatTemplate& chat_template = model_.chat_template();
    for (const std::string& stop : chat_template.stop_strings()) {
      options.stop_strings.push_back(stop);
    }
    // Special tokens, as stop strings of templates often are, give no text.
    if (!request.ignore_eos) options.stop_tokens = model_.end_tokens();
  }
  options.ignore_eos = request.ignore_eos;
  begin_choice(generation, 0);  // here: a format that cannot be used is told instead of an answer
}

/// Goes on with a prompt: what its choices begin with, and how many tokens they may have.
Error ChatServer::begin_prompt(Generation& generation, ServedText& text, size_t at_prompt) {
  const ApiRequest& request = generation.request;
  generation.at_prompt = at_prompt;
  const auto is_over = [&] {
    return generation.is_gone() || generation.is_late() || pool_.is_stopped();
  };
  if (at_prompt > 0 && is_over()) return Error::EndOfMethod;
  const std::vector<uint64_t>& tokens = generation.prompt();
  int64_t& most = generation.options.max_new_tokens;
  most = model_.context_length() - static_cast<int64_t>(tokens.size());
  if (options_.max_tokens > 0) most = std::min(most, options_.max_tokens);
  if (request.max_tokens) most = std::min(most, *request.max_tokens);
  generation.echo.clear();
  generation.echoed.clear();
  if (!request.echo) return Error::Ok;
  const Prompt& prompt = request.prompts[at_prompt];
  generation.echo = prompt.text;
  for (const uint64_t token : prompt.tokens) generation.echo += model_.decode(token);
  if (!generation.scores_prompt()) return Error::Ok;
  generation.echoed.push_back({tokens[0], std::numeric_limits<float>::quiet_NaN(), {}});
  return text.score(tokens, [&](size_t i, runtime::Span<const float> logits) {
    generation.echoed.push_back(told_of({logits.begin(), logits.end()}, tokens[i],
                                        static_cast<size_t>(request.n_logprobs)));
    return !is_over();
  });
}

/// Makes what each of a prompt's choices needs anew. A seed that is given is that of the first.
void ChatServer::begin_choice(Generation& generation, int index) {
  const ApiRequest& request = generation.request;
  GenerationOptions& options = generation.options;
  options.sampling.seed =
      request.seed_given ? request.sampling.seed + static_cast<uint64_t>(index) : random_seed();
  options.processors.clear();
  generation.n_tokens = 0;
  if (!request.tools.empty()) generation.reader.emplace(request.tools);
  if (!request.format.type.empty()) {
    options.processors.push_back(
        std::make_shared<ConstraintProcessor>(constraints_.get(request.format)));
  }
  if (request.n_logprobs >= 0 || request.best_of > request.n_choices) {
    generation.recorder = std::make_shared<LogprobRecorder>(std::max(request.n_logprobs, 0));
    options.processors.push_back(generation.recorder);
  }
}

/// Whether another choice is to be made for the prompt, by the same session, which knows it.
bool ChatServer::has_next(Generation& generation, int index) const {
  return index < generation.request.best_of &&
         (index == 0 || (!generation.is_gone() && !generation.is_late() && !pool_.is_stopped()));
}

/// Whether the model can continue the prompt, or only read it where nothing more is wanted.
void ChatServer::check_prompt(const std::vector<uint64_t>& prompt,
                              const ApiRequest& request) const {
  const int64_t n_prompt = static_cast<int64_t>(prompt.size());
  const char* param = request.chat ? "messages" : "prompt";
  if (n_prompt == 0) throw ApiError{400, "the prompt is empty", param, "invalid_value"};
  if (n_prompt + (request.max_tokens == 0 ? 0 : 1) > model_.context_length()) {
    throw ApiError{400,
                   "the prompt has " + std::to_string(n_prompt) +
                       " tokens; with the answer at most " +
                       std::to_string(model_.context_length()) + " are possible",
                   param, "context_length_exceeded"};
  }
  // Vocabularies of tokenizers may be larger than that of the model.
  for (const uint64_t token : prompt) {
    if (token < static_cast<uint64_t>(model_.vocabulary_size())) continue;
    throw ApiError{400,
                   "the prompt has token " + std::to_string(token) +
                       ", which is not in the model's vocabulary of " +
                       std::to_string(model_.vocabulary_size()) + " tokens",
                   param, "invalid_value"};
  }
}

SessionPool::Lease ChatServer::take_session(Generation& generation) {
  auto answer = pool_.take(generation.prompts[0], generation.deadline,
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
  auto result = text.generate(generation.prompt(), generation.options);
  if (generation.gone) ++metrics_.n_cancelled;
  return result;
}

/// Adds a choice to the usage, which has each prompt once.
void ChatServer::add(Generation& generation, const GenerationResult& result, int index) {
  Usage& usage = generation.usage;
  if (index == 0) {
    usage.n_prompt += static_cast<int64_t>(generation.prompt().size());
    usage.n_cached += generation.scores_prompt() ? 0 : result.n_reused_tokens;
    if (generation.at_prompt == 0) metrics_.add_first_token(result.time_to_first_token_seconds);
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

/// The choices of the prompt that is continued now: the likeliest of those that were made.
void ChatServer::add_choices(Generation& generation, ServedText& text) {
  struct Choice {
    std::string text;
    const char* reason;
    std::vector<TokenLogprob> logprobs;
    std::vector<ToolCall> calls;
    double mean;
  };
  std::vector<Choice> made;
  for (int i = 0; has_next(generation, i); ++i) {
    begin_choice(generation, i);
    const auto result = run_generation(generation, text);
    if (!result.ok()) throw error_of(result.error(), generation.request.format);
    add(generation, *result, i);
    Choice one;
    one.text = generation.echo + result->text;
    if (auto& reader = generation.reader) {
      one.text = reader->add(one.text);
      one.text += reader->finish();
      one.calls = reader->take_calls();
    }
    one.reason = generation.reason_of(*result);
    one.logprobs = generation.take_logprobs();
    one.mean = mean_logprob(one.logprobs);
    one.logprobs.insert(one.logprobs.begin(), generation.echoed.begin(), generation.echoed.end());
    made.push_back(std::move(one));
  }
  const ApiRequest& request = generation.request;
  if (request.best_of > request.n_choices) {
    std::stable_sort(made.begin(), made.end(),
                     [](const Choice& a, const Choice& b) { return a.mean > b.mean; });
    made.resize(std::min(made.size(), static_cast<size_t>(request.n_choices)));
  }
  for (size_t i = 0; i < made.size(); ++i) {
    generation.answer.begin_choice(generation.index_of(static_cast<int>(i)));
    generation.answer.add(made[i].text, made[i].reason, made[i].logprobs, made[i].calls);
  }
}

std::string ChatServer::whole_answer(Generation& generation, ServedText& text) {
  for (size_t i = 0; i < generation.prompts.size(); ++i) {
    const Error error = begin_prompt(generation, text, i);
    if (error != Error::Ok) throw error_of(error, generation.request.format);
    add_choices(generation, text);
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
  for (size_t p = 0; p < generation.prompts.size() && error == Error::Ok; ++p) {
    error = begin_prompt(generation, text, p);
    for (int i = 0; error == Error::Ok && has_next(generation, i); ++i) {
      begin_choice(generation, i);
      answer.begin_choice(generation.index_of(i));
      if (generation.request.chat) send(answer.first());
      if (generation.request.echo) send(answer.part(generation.echo, generation.echoed));
      const auto result = run_generation(generation, text);
      error = result.error();
      if (error != Error::Ok) break;
      add(generation, *result, i);
      send_text("", true);
      const auto rest = generation.take_logprobs();
      if (!rest.empty()) send(answer.part("", rest));
      send(answer.last(generation.reason_of(*result)));
    }
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
