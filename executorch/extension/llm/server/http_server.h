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
  /// The port; 0: any free one.
  int port = 8080;
  size_t max_connections = 256;
  HttpLimits limits;
  HttpTimeouts timeouts;
};

/// Accepts connections; each is served by its own thread. At the limit of connections, the one
/// whose client has been silent for longest is closed; if no client is silent, the new connection
/// is refused.
class HttpServer {
 public:
  /// Answers a request on `connection`. Returns whether the connection can serve further requests;
  /// an exception closes it.
  using Handler = std::function<bool(const HttpRequest& request, HttpConnection& connection)>;
  /// Makes the body of a response to a request that could not be read.
  using ErrorBody = std::function<std::string(const HttpFailure& failure)>;

  HttpServer(HttpOptions options, Handler handler, ErrorBody error_body);
  ~HttpServer();

  /// Binds the socket. Returns an empty string, or why the address cannot be used.
  std::string bind();
  int port() const { return port_; }
  /// Whether the address can be reached from this machine only.
  bool is_local() const { return is_local_; }
  /// Serves until stop(), which may be called from a handler of a signal, too.
  void run();
  void stop();
  /// To be called after run(): closes connections that wait for a request, gives the others up to
  /// `grace` to end, then calls `hurry`.
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
  void answer_requests(HttpConnection& connection);
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
