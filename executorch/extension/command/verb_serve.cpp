#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/text_run.h>
#include <executorch/extension/command/verbs.h>
#include <executorch/extension/llm/server/chat_server.h>
#include <executorch/extension/llm/server/text_engine_model.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace executorch::extension::command {
namespace {

using llm::server::ChatServer;

std::atomic<ChatServer*> serving{nullptr};

/// The first signal lets answers be completed; another one ends the process, as it would have.
void stop_serving(int signal) {
  if (ChatServer* const server = serving.load()) server->stop();
  std::signal(signal, SIG_DFL);
}

/// The API key from the environment, unless an option gives it: options are visible to other users
/// of the machine.
std::string api_key(const ServeVerb& verb) {
  if (!verb.api_key.empty()) return verb.api_key;
  const char* const from_environment = std::getenv("EXECUTORCH_API_KEY");
  return from_environment == nullptr ? "" : from_environment;
}

std::string name_of(const std::string& path) {
  const std::string file = path.substr(path.find_last_of('/') + 1);
  return file.substr(0, file.rfind(".pte"));
}

llm::server::ServerOptions options_of(const ServeVerb& verb) {
  llm::server::ServerOptions options;
  options.http.host = verb.host;
  options.http.port = verb.port;
  options.http.max_connections = verb.n_connections;
  options.http.limits.body_bytes = static_cast<size_t>(verb.body_kib) << 10;
  options.model_name = verb.name.empty() ? name_of(verb.model) : verb.name;
  options.api_key = api_key(verb);
  options.n_sessions = verb.n_sessions;
  options.n_waiting = verb.n_waiting;
  options.max_tokens = verb.max_tokens;
  options.timeout = std::chrono::seconds(verb.timeout_seconds);
  return options;
}

}  // namespace

void serve(const ServeVerb& verb) {
  use_threads(verb.n_threads);
  llm::EngineOptions engine_options;
  engine_options.model_path = verb.model;
  if (!verb.data.empty()) engine_options.data_files.push_back(verb.data);
  engine_options.tokenizer_path = verb.tokenizer;
  engine_options.method_name = verb.method;
  auto engine = llm::TextEngine::load(engine_options);
  check(engine.error(), "load " + verb.model);
  const auto model = llm::server::serve_engine(
      std::move(*engine), verb.chat_template.empty() ? "" : template_text(verb.chat_template));
  ChatServer server(*model, options_of(verb));
  if (const std::string cause = server.bind(); !cause.empty()) fail("cannot serve at " + cause);
  serving = &server;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, stop_serving);
  std::printf("serving %s at http://%s:%d (%s; chat template: %s)\n", verb.model.c_str(),
              verb.host.find(':') == std::string::npos ? verb.host.c_str()
                                                       : ("[" + verb.host + "]").c_str(),
              server.port(), options_of(verb).api_key.empty() ? "no API key" : "with an API key",
              model->chat_template().name().c_str());
  std::fflush(stdout);
  server.run();
  serving = nullptr;
}

}  // namespace executorch::extension::command
