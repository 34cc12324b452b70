/// Serves a language model over HTTP, in the common protocol of chat completions.
#pragma once

#include <executorch/extension/llm/server/api.h>
#include <executorch/extension/llm/server/constraint_cache.h>
#include <executorch/extension/llm/server/http_server.h>
#include <executorch/extension/llm/server/metrics.h>
#include <executorch/extension/llm/server/session_pool.h>

#include <string>

namespace executorch::extension::llm::server {

struct ServerOptions {
  HttpOptions http;
  /// The model's name, by which clients may ask for it.
  std::string model_name = "model";
  /// If it is not empty, requests need it as their bearer token.
  std::string api_key;
  /// How many conversations run at the same time, and how many requests may wait for one.
  size_t n_sessions = 4;
  size_t n_waiting = 64;
  /// Most tokens of an answer; 0: as many as the context has room for.
  int64_t max_tokens = 0;
  /// The time limit of a request, waiting included.
  std::chrono::seconds timeout{600};
};

///   GET  /                      a page to chat on
///   GET  /health  /metrics
///   GET  /v1/models  /v1/models/NAME
///   POST /v1/chat/completions  /v1/completions
class ChatServer {
 public:
  /// `model` must outlive it.
  ChatServer(ServedModel& model, ServerOptions options);

  /// Binds the socket. Returns an empty string, or why the address cannot be used.
  std::string bind() { return http_.bind(); }
  int port() const { return http_.port(); }
  /// Serves until stop(); unfinished answers then have `grace` to be completed.
  void run(std::chrono::milliseconds grace = std::chrono::seconds(3));
  /// Ends run(). May be called from any thread and from signal handlers.
  void stop() { http_.stop(); }

 private:
  struct Generation;

  bool handle(const HttpRequest& request, HttpConnection& connection);
  HttpResponse answer(const HttpRequest& request);
  void check_access(const HttpRequest& request) const;
  HttpResponse model_list(const std::string& path) const;
  std::string metrics_text() const;

  bool generate(const HttpRequest& request, HttpConnection& connection, bool chat);
  void prepare(Generation& generation);
  runtime::Error begin_prompt(Generation& generation, ServedText& text, size_t at_prompt);
  void begin_choice(Generation& generation, int index);
  void add_choices(Generation& generation, ServedText& text);
  bool has_next(Generation& generation, int index) const;
  void check_prompt(const std::vector<uint64_t>& prompt, const ApiRequest& request) const;
  ChatPrompt prompt_of(const ApiRequest& request) const;
  SessionPool::Lease take_session(Generation& generation);
  runtime::Result<GenerationResult> run_generation(Generation& generation, ServedText& text);
  std::string whole_answer(Generation& generation, ServedText& text);
  bool answer_in_parts(Generation& generation, ServedText& text);
  void add(Generation& generation, const GenerationResult& result, int index);
  void count(const Generation& generation);

  ServedModel& model_;
  const ServerOptions options_;
  const int64_t created_;
  Metrics metrics_;
  SessionPool pool_;
  ConstraintCache constraints_;
  std::atomic<uint64_t> n_answers_{0};
  HttpServer http_;  // the last: its threads use all the others
};

}  // namespace executorch::extension::llm::server
