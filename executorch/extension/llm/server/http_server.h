#pragma once

#include <executorch/extension/llm/server/http_connection.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace executorch::extension::llm::server {

struct HttpOptions {
  std::string host = "127.0.0.1";
  /// 0: one that is free.
  int port = 8080;
  size_t max_connections = 256;
  HttpLimits limits;
  HttpTimeouts timeouts;
};

/// Accepts connections, each served by a thread of its own. Where there are too many, the one that
/// has been silent for longest makes room; where none is silent, the new one is refused.
class HttpServer {
 public:
  /// Answers a request on `connection`. Returns whether the connection can be used further.
  using Handler = std::function<bool(const HttpRequest& request, HttpConnection& connection)>;
  /// The body that says what is wrong with a request that could not be read.
  using ErrorBody = std::function<std::string(const HttpFailure& failure)>;

  HttpServer(HttpOptions options, Handler handler, ErrorBody error_body);
  ~HttpServer();

  /// Empty, or why the address cannot be used.
  std::string bind();
  int port() const { return port_; }
  /// Whether only the machine itself can connect.
  bool is_local() const { return is_local_; }
  /// Serves until stop(), which may be called from a handler of a signal, too.
  void run();
  void stop();
  /// After run(): ends connections that wait for clients; then the others within `grace`.
  /// `hurry` is called when that is over.
  void close_connections(std::chrono::milliseconds grace, const std::function<void()>& hurry);

  size_t n_connections() const;
  uint64_t n_refused() const { return n_refused_.load(); }

 private:
  struct Client {
    Client(int socket, const HttpOptions& options)
        : connection(socket, options.limits, options.timeouts) {}
    HttpConnection connection;
    std::thread thread;
    bool done = false;
  };

  void accept_one();
  bool make_room(std::unique_lock<std::mutex>& lock);
  void refuse(int socket);
  void serve(Client& client);
  void join_done();

  const HttpOptions options_;
  const Handler handler_;
  const ErrorBody error_body_;
  int socket_ = -1, port_ = 0;
  bool is_local_ = false;
  int wake_[2] = {-1, -1};  // a pipe: stop() writes, run() reads
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> n_refused_{0};
  mutable std::mutex mutex_;  // of clients_
  std::condition_variable changed_;
  std::list<Client> clients_;
};

}  // namespace executorch::extension::llm::server
