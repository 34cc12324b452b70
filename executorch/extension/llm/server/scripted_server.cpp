// A server whose model follows a script, so that tests know what it says and when.
//
//   scripted_server [microseconds_per_token] [sessions] [waiting] [api_key] [template]
//
// Prints its port. Answers with what the last message says, in upper case; "COUNT n" with n
// numbers.

#include <executorch/extension/llm/server/chat_server.h>
#include <executorch/extension/llm/server/scripted_model.h>
#include <executorch/runtime/platform/runtime.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace executorch::extension::llm::server;

namespace {

ChatServer* running = nullptr;

void handle_signal(int) {
  if (running != nullptr) running->stop();
}

std::string answer(const std::string& prompt) {
  const std::string user = "<|im_start|>user\n";
  size_t begin = prompt.rfind(user);
  begin = begin == std::string::npos ? 0 : begin + user.size();
  std::string said = prompt.substr(begin, prompt.find("<|im_end|>", begin) - begin);
  if (said.compare(0, 6, "COUNT ") == 0) {
    std::string numbers;
    for (int i = 0; i < std::atoi(said.c_str() + 6); ++i) numbers += std::to_string(i) + " ";
    return numbers;
  }
  if (said.compare(0, 4, "SAY ") == 0) return said.substr(4);
  for (char& c : said) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return said;
}

}  // namespace

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  Script script;
  script.answer = answer;
  script.token_time = std::chrono::microseconds(argument(1, 0));
  ScriptedModel model(script, argc > 5 ? argv[5] : "chatml");
  ServerOptions options;
  options.http.port = 0;
  options.http.max_connections = 120;
  options.http.limits.body_bytes = 1 << 20;
  options.http.timeouts.head = std::chrono::seconds(2);
  options.http.timeouts.body = std::chrono::seconds(3);
  options.model_name = "scripted";
  options.n_sessions = static_cast<size_t>(argument(2, 2));
  options.n_waiting = static_cast<size_t>(argument(3, 8));
  if (argc > 4) options.api_key = argv[4];
  ChatServer server(model, options);
  const std::string cause = server.bind();
  if (!cause.empty()) {
    std::fprintf(stderr, "%s\n", cause.c_str());
    return 1;
  }
  running = &server;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, handle_signal);
  std::printf("%d\n", server.port());
  std::fflush(stdout);
  server.run();
  std::puts("stopped");
  return 0;
}
