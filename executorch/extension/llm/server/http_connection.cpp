#include <executorch/extension/llm/server/http_connection.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace executorch::extension::llm::server {
namespace {

constexpr size_t kReadSize = 16 << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpConnection::HttpConnection(int socket, const HttpLimits& limits, const HttpTimeouts& timeouts)
    : socket_(socket), limits_(limits), timeouts_(timeouts) {
  // Tokens go out one by one; waiting to fill packets would hold them back.
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // TCP probes detect a disconnected client while no response is being sent: a machine that was
  // switched off, or an HTTP/1.0 client, which is_gone() cannot probe with an interim response.
  const int seconds = 10, n_probes = 3;
  setsockopt(socket_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket_, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
  setsockopt(socket_, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
  setsockopt(socket_, IPPROTO_TCP, TCP_KEEPCNT, &n_probes, sizeof(n_probes));
}

HttpConnection::~HttpConnection() {
  close(socket_);
}

bool HttpConnection::wait(short events, Clock::time_point deadline) const {
  while (true) {
    // Rounded up: false says that the deadline has passed, not that less than 1 ms is left.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll_it{socket_, events, 0};
    const int n = poll(&poll_it, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

bool HttpConnection::receive(Clock::time_point deadline) {
  while (wait(POLLIN, deadline)) {
    char bytes[kReadSize];
    const ssize_t n = recv(socket_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) {
      buffer_.append(bytes, static_cast<size_t>(n));
      return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return false;
  }
  return false;
}

HttpConnection::Read HttpConnection::read(HttpRequest& request, HttpFailure& failure) {
  idle_since_ = Clock::now();
  auto deadline = Clock::now() + (buffer_.empty() ? timeouts_.idle : timeouts_.head);
  bool begun = false;
  while (true) {
    // Empty lines before a request are allowed.
    while (buffer_.compare(0, 2, "\r\n") == 0) buffer_.erase(0, 2);
    const size_t end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos && end <= limits_.head_bytes) {
      BodyForm form;
      failure = parse_head(std::string_view(buffer_).substr(0, end + 4), limits_, request, form);
      if (failure.status != 0) return Read::Failed;
      takes_chunks_ = request.is_1_1;
      buffer_.erase(0, end + 4);
      const Read read = read_body(form, request, failure);
      takes_interim_ = request.is_1_1;
      idle_since_ = Clock::time_point::max();
      return read;
    }
    if (buffer_.size() > limits_.head_bytes) {
      failure = {431, "the headers are too long"};
      return Read::Failed;
    }
    if (!begun && !buffer_.empty()) {
      begun = true;
      deadline = std::min(deadline, Clock::now() + timeouts_.head);
    }
    if (receive(deadline)) continue;
    if (buffer_.empty() || Clock::now() < deadline) return Read::Closed;
    failure = {408, "the request took too long"};
    return Read::Failed;
  }
}

HttpConnection::Read HttpConnection::read_body(const BodyForm& form, HttpRequest& request,
                                               HttpFailure& failure) {
  const auto deadline = Clock::now() + timeouts_.body;
  const bool has_body = form.chunked || form.length > buffer_.size();
  if (form.expects_continue && has_body && !write(kContinue)) return Read::Closed;
  bool complete = true;
  if (form.chunked) {
    complete = read_chunks(request, failure, deadline);
  } else {
    while (complete && buffer_.size() < form.length) complete = receive(deadline);
    if (complete) {
      request.body = buffer_.substr(0, form.length);
      buffer_.erase(0, form.length);
    }
  }
  if (complete) return Read::Request;
  if (failure.status == 0) {
    if (Clock::now() < deadline) return Read::Closed;
    failure = {408, "the body took too long"};
  }
  return Read::Failed;
}

bool HttpConnection::read_line(std::string& line, size_t max_bytes, Clock::time_point deadline) {
  while (true) {
    const size_t end = buffer_.find("\r\n");
    if (end != std::string::npos && end <= max_bytes) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return true;
    }
    if (buffer_.size() > max_bytes || !receive(deadline)) return false;
  }
}

bool HttpConnection::read_chunks(HttpRequest& request, HttpFailure& failure,
                                 Clock::time_point deadline) {
  std::string line;
  while (true) {
    uint64_t length = 0;
    if (!read_line(line, 1024, deadline)) {
      if (buffer_.size() > 1024) failure = {400, "not a chunk"};
      return false;
    }
    if (!parse_chunk_length(line, length)) {
      failure = {400, "not the length of a chunk"};
      return false;
    }
    if (length == 0) break;
    if (length > limits_.body_bytes - request.body.size()) {
      failure = {413, "the body is too large"};
      return false;
    }
    while (buffer_.size() < length + 2) {
      if (!receive(deadline)) return false;
    }
    if (buffer_.compare(length, 2, "\r\n") != 0) {
      failure = {400, "a chunk without its end"};
      return false;
    }
    request.body.append(buffer_, 0, length);
    buffer_.erase(0, length + 2);
  }
  // Trailers are read and not looked at.
  for (size_t n_bytes = 0; n_bytes <= limits_.head_bytes; n_bytes += line.size() + 2) {
    if (!read_line(line, limits_.head_bytes, deadline)) return false;
    if (line.empty()) return true;
  }
  failure = {431, "the trailers are too long"};
  return false;
}

bool HttpConnection::write(std::string_view bytes) {
  const auto deadline = Clock::now() + timeouts_.write;
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      return false;
    } else if (!wait(POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool HttpConnection::send(const HttpResponse& response, bool keep_alive, bool with_body) {
  takes_interim_ = false;
  const std::string head =
      response_head(response, keep_alive, {BodyEnd::AfterLength, response.body.size()});
  return write(with_body ? head + response.body : head);
}

bool HttpConnection::begin_stream(const HttpResponse& response, bool keep_alive) {
  takes_interim_ = false;
  const BodyEnd end{takes_chunks_ ? BodyEnd::InChunks : BodyEnd::WithConnection};
  return write(response_head(response, keep_alive && takes_chunks_, end));
}

bool HttpConnection::send_part(std::string_view part) {
  if (part.empty()) return true;
  if (!takes_chunks_) return write(part);
  char length[32];
  const int n = std::snprintf(length, sizeof(length), "%zx\r\n", part.size());
  return write(std::string(length, static_cast<size_t>(n)) + std::string(part) + "\r\n");
}

bool HttpConnection::end_stream() {
  return takes_chunks_ && write("0\r\n\r\n");
}

bool HttpConnection::is_gone() {
  pollfd poll_it{socket_, POLLRDHUP, 0};
  if (poll(&poll_it, 1, 0) <= 0) return false;
  if ((poll_it.revents & ~POLLRDHUP) != 0) return true;  // an error, or both sides are closed
  // Any number of interim responses may come before a response (RFC 9110, 15.2); HTTP/1.0 has none.
  return std::exchange(takes_interim_, false) && !write(kContinue);
}

void HttpConnection::linger() {
  shutdown(socket_, SHUT_WR);
  constexpr size_t kMostBytes = 8 << 20;
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  for (size_t n = 0; n < kMostBytes; n += buffer_.size()) {
    buffer_.clear();
    if (!receive(deadline)) return;
  }
}

void HttpConnection::shut_down() {
  shutdown(socket_, SHUT_RDWR);
}

}  // namespace executorch::extension::llm::server
