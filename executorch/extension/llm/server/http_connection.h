#pragma once

#include <executorch/extension/llm/server/http_message.h>

#include <atomic>
#include <chrono>
#include <string>

namespace executorch::extension::llm::server {

using Clock = std::chrono::steady_clock;

/// How long a client may take. All of a head, all of a body: one byte now and then does not help.
struct HttpTimeouts {
  std::chrono::milliseconds head{10'000};
  std::chrono::milliseconds body{30'000};
  /// Between requests.
  std::chrono::milliseconds idle{15'000};
  /// Until the client takes what was sent.
  std::chrono::milliseconds write{10'000};
};

/// A client. One thread serves it; shut_down() and since_idle() may be called from others.
class HttpConnection {
 public:
  /// Owns the socket.
  HttpConnection(int socket, const HttpLimits& limits, const HttpTimeouts& timeouts);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  enum class Read { Request, Closed, Failed };
  /// The next request. Failed: `failure` must be answered, and the connection closed.
  Read read(HttpRequest& request, HttpFailure& failure);

  /// Sends a whole response; `with_body` is false for HEAD. False if the client is gone.
  bool send(const HttpResponse& response, bool keep_alive, bool with_body = true);
  /// A response in parts, as they are made; a client of HTTP/1.0 gets them without chunks, up to
  /// the end of the connection. end_stream() says whether that can be used further.
  bool begin_stream(const HttpResponse& response, bool keep_alive);
  bool send_part(std::string_view part);
  bool end_stream();

  /// Whether the client reads no more. One that has only ended what it sends is told apart by an
  /// interim response, which a closed socket answers with a reset: the next call knows.
  bool is_gone();
  /// Reads what still comes, for a moment, so that the client can read the answer.
  void linger();
  /// Ends what the connection's thread waits for.
  void shut_down();
  /// Since when the client has been waited for; the greatest value while a request is served.
  Clock::time_point idle_since() const { return idle_since_.load(); }

 private:
  bool wait(short events, Clock::time_point deadline) const;
  /// Appends to buffer_. False at the end, at an error or too late.
  bool receive(Clock::time_point deadline);
  bool write(std::string_view bytes);
  Read read_body(const BodyForm& form, HttpRequest& request, HttpFailure& failure);
  bool read_chunks(HttpRequest& request, HttpFailure& failure, Clock::time_point deadline);
  /// A line of buffer_, without its end, which is taken out.
  bool read_line(std::string& line, size_t max_bytes, Clock::time_point deadline);

  const int socket_;
  const HttpLimits limits_;
  const HttpTimeouts timeouts_;
  std::string buffer_;
  bool takes_chunks_ = true;    // the client of the last request
  bool takes_interim_ = false;  // it may be sent "100 Continue" now
  std::atomic<Clock::time_point> idle_since_{Clock::now()};
};

}  // namespace executorch::extension::llm::server
