#include <executorch/extension/llm/server/http_server.h>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

namespace executorch::extension::llm::server {

HttpServer::HttpServer(HttpOptions options, Handler handler, ErrorBody error_body)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      error_body_(std::move(error_body)) {}

HttpServer::~HttpServer() {
  close_connections(std::chrono::milliseconds(0), {});
  for (const int fd : {socket_, wake_[0], wake_[1]}) {
    if (fd >= 0) close(fd);
  }
}

std::string HttpServer::bind() {
  const std::string address = options_.host + ":" + std::to_string(options_.port);
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return std::strerror(errno);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const std::string port = std::to_string(options_.port);
  if (const int error = getaddrinfo(options_.host.c_str(), port.c_str(), &hints, &found)) {
    return address + ": " + gai_strerror(error);
  }
  std::string cause = address + ": no address";
  for (const addrinfo* a = found; a != nullptr && socket_ < 0; a = a->ai_next) {
    const int made = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (made >= 0) setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (made >= 0 && ::bind(made, a->ai_addr, a->ai_addrlen) == 0 && listen(made, SOMAXCONN) == 0) {
      socket_ = made;
      break;
    }
    cause = address + ": " + std::strerror(errno);
    if (made >= 0) close(made);
  }
  freeaddrinfo(found);
  if (socket_ < 0) return cause;
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &length);
  if (bound.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<sockaddr_in6*>(&bound);
    port_ = ntohs(v6->sin6_port);
    is_local_ = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  } else {
    const auto* v4 = reinterpret_cast<sockaddr_in*>(&bound);
    port_ = ntohs(v4->sin_port);
    is_local_ = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  return "";
}

void HttpServer::run() {
  while (!stopping_) {
    pollfd polled[] = {{socket_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (poll(polled, 2, 1000) > 0 && (polled[0].revents & POLLIN) != 0) accept_one();
    join_done();
  }
  close(socket_);
  socket_ = -1;
}

void HttpServer::stop() {
  stopping_ = true;
  const char byte = 0;
  const ssize_t written = write(wake_[1], &byte, 1);
  (void)written;  // the pipe is full: run() wakes anyway
}

void HttpServer::accept_one() {
  const int accepted = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) {
    // No descriptors are left: wait until some are closed, instead of spinning.
    if (errno == EMFILE || errno == ENFILE) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (clients_.size() >= options_.max_connections && !make_room(lock)) return refuse(accepted);
  Client& client = clients_.emplace_back(accepted, options_);
  try {
    client.thread = std::thread([this, &client] { serve(client); });
  } catch (const std::system_error&) {  // no more threads
    clients_.pop_back();
    ++n_refused_;
  }
}

/// Closes the connection that has waited for its client for the longest time. Returns whether there
/// is room for a new one.
bool HttpServer::make_room(std::unique_lock<std::mutex>& lock) {
  if (clients_.empty()) return false;  // not one connection is allowed
  const auto oldest =
      std::min_element(clients_.begin(), clients_.end(), [](const Client& a, const Client& b) {
        return a.connection.idle_since() < b.connection.idle_since();
      });
  // A new client may be about to send its request, so do not close its connection yet.
  constexpr auto kFairWait = std::chrono::milliseconds(500);
  const auto since = oldest->connection.idle_since();
  if (since == Clock::time_point::max() || Clock::now() - since < kFairWait) return false;
  oldest->connection.shut_down();
  changed_.wait_for(lock, kFairWait, [&] {
    return std::any_of(clients_.begin(), clients_.end(), [](const Client& c) { return c.done; });
  });
  lock.unlock();
  join_done();
  lock.lock();
  return clients_.size() < options_.max_connections;
}

void HttpServer::refuse(int socket) {
  ++n_refused_;
  HttpResponse response;
  response.status = 503;
  response.headers.emplace_back("Retry-After", "1");
  response.body = error_body_({503, "too many connections"});
  const std::string text =
      response_head(response, false, {BodyEnd::AfterLength, response.body.size()}) + response.body;
  const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;  // the client may be gone
  shutdown(socket, SHUT_WR);
  close(socket);
}

void HttpServer::serve(Client& client) {
  try {
    answer_requests(client.connection);
  } catch (const std::exception&) {
    // There is not even memory for an answer: this connection ends, and others go on.
  }
  client.connection.shut_down();
  const std::lock_guard<std::mutex> lock(mutex_);
  client.done = true;
  changed_.notify_all();
}

void HttpServer::answer_requests(HttpConnection& connection) {
  bool usable = true;
  while (usable && !stopping_) {
    HttpRequest request;
    HttpFailure failure;
    const auto read = connection.read(request, failure);
    if (read == HttpConnection::Read::Closed) break;
    if (read == HttpConnection::Read::Failed) {
      HttpResponse response;
      response.status = failure.status;
      response.body = error_body_(failure);
      if (connection.send(response, false)) connection.linger();
      break;
    }
    usable = handler_(request, connection) && request.keep_alive;
  }
}

void HttpServer::join_done() {
  std::list<Client> done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto client = clients_.begin(); client != clients_.end();) {
      const auto next = std::next(client);
      if (client->done) done.splice(done.end(), clients_, client);
      client = next;
    }
  }
  for (Client& client : done) client.thread.join();
}

void HttpServer::close_connections(std::chrono::milliseconds grace,
                                   const std::function<void()>& hurry) {
  stopping_ = true;
  std::unique_lock<std::mutex> lock(mutex_);
  for (Client& client : clients_) {
    if (client.connection.idle_since() != Clock::time_point::max()) client.connection.shut_down();
  }
  const auto all_done = [this] {
    return std::all_of(clients_.begin(), clients_.end(), [](const Client& c) { return c.done; });
  };
  if (!changed_.wait_for(lock, grace, all_done)) {
    if (hurry) hurry();
    for (Client& client : clients_) client.connection.shut_down();
    changed_.wait(lock, all_done);
  }
  lock.unlock();
  join_done();
}

size_t HttpServer::n_connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return clients_.size();
}

}  // namespace executorch::extension::llm::server
