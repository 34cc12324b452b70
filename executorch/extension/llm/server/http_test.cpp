#include <executorch/extension/llm/server/http_connection.h>
#include <executorch/extension/llm/server/http_server.h>

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <random>
#include <thread>

using namespace executorch::extension::llm::server;

namespace {

struct Parsed {
  HttpRequest request;
  BodyForm body;
  int status;
};

Parsed parse(const std::string& head) {
  Parsed parsed{};
  parsed.status = parse_head(head, HttpLimits(), parsed.request, parsed.body).status;
  return parsed;
}

/// A connection that has received `bytes`, after which the client closes its side.
struct Received {
  explicit Received(const std::string& bytes, HttpLimits limits = {}) {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    client = sockets[0];
    sender = std::thread([this, bytes] {
      for (size_t at = 0; at < bytes.size();) {
        const ssize_t n = send(client, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      shutdown(client, SHUT_WR);
    });
    HttpTimeouts timeouts;
    timeouts.head = timeouts.body = timeouts.idle = std::chrono::milliseconds(500);
    connection = std::make_unique<HttpConnection>(sockets[1], limits, timeouts);
  }
  ~Received() {
    connection.reset();
    if (sender.joinable()) sender.join();
    close(client);
  }
  HttpConnection::Read read() {
    request = {};
    failure = {};
    return connection->read(request, failure);
  }
  int client;
  std::thread sender;
  std::unique_ptr<HttpConnection> connection;
  HttpRequest request;
  HttpFailure failure;
};

}  // namespace

TEST(HttpMessage, ReadsRequests) {
  const Parsed parsed =
      parse("POST /v1/x?a=b HTTP/1.1\r\nHOST: me\r\nContent-Length: 12\r\nX-Y:  a b \r\n\r\n");
  EXPECT_EQ(parsed.status, 0);
  EXPECT_EQ(parsed.request.method, "POST");
  EXPECT_EQ(parsed.request.path, "/v1/x");
  EXPECT_EQ(parsed.request.header("host"), "me");
  EXPECT_EQ(parsed.request.header("x-y"), "a b");
  EXPECT_EQ(parsed.body.length, 12u);
  EXPECT_TRUE(parsed.request.keep_alive);
  const Parsed old = parse("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.status, 0);
  EXPECT_FALSE(old.request.keep_alive || old.request.is_1_1);
  EXPECT_FALSE(parse("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").request.keep_alive);
  EXPECT_EQ(parse("GET http://h/p?q HTTP/1.1\r\nHost: h\r\n\r\n").request.path, "/p");
}

TEST(HttpMessage, RefusesWhatIsNone) {
  struct Row {
    std::string head;
    int status;
  };
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a: b\r\n";
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n", end = "\r\n\r\n";
  for (const Row& row : std::vector<Row>{
           {"\r\n\r\n", 400},
           {"GET\r\n\r\n", 400},
           {"GET / HTTP/2.0" + end, 505},
           {"GET / XTTP/1.1" + end, 400},
           {"GE(T / HTTP/1.1" + end, 400},
           {"GET x HTTP/1.1" + end, 400},
           {"GET /\x01 HTTP/1.1" + end, 400},
           {"GET /" + std::string(5000, 'a') + " HTTP/1.1" + end, 414},
           {"GET / HTTP/1.1" + end, 400},
           {get + "Host: h" + end, 400},
           {"GET / HTTP/1.0\r\nHost: h\r\nhost: g" + end, 400},
           {get + "a b: c" + end, 400},
           {get + " folded" + end, 400},
           {get + "no colon" + end, 400},
           {get + std::string("a: b\0c", 6) + end, 400},
           {get + "a: b\nc: d" + end, 400},
           {get + many + "\r\n", 431},
           {get + "Content-Length: -1" + end, 400},
           {get + "Content-Length: 1x" + end, 400},
           {get + "Content-Length: " + end, 400},
           {get + "Content-Length: 5\r\nContent-Length: 6" + end, 400},
           {get + "Content-Length: 99999999999999999999" + end, 413},
           {get + "Content-Length: 18446744073709551615" + end, 413},
           {get + "Content-Length: 5\r\nTransfer-Encoding: chunked" + end, 400},
           {get + "Transfer-Encoding: gzip" + end, 501},
           {get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" + end, 400},
           {get + "Content-Encoding: gzip" + end, 415},
           {get + "Expect: miracles" + end, 417}}) {
    EXPECT_EQ(parse(row.head).status, row.status) << row.head;
  }
}

TEST(HttpMessage, ReadsLengthsOfChunks) {
  uint64_t length = 0;
  EXPECT_TRUE(parse_chunk_length("1aF;x=y", length));
  EXPECT_EQ(length, 0x1afu);
  for (const char* line : {"", "-1", "g", "0x1", "1 2", "10000000000000000"}) {
    EXPECT_FALSE(parse_chunk_length(line, length)) << line;
  }
}

TEST(HttpMessage, ComparesSecrets) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abd", "abc"));
  EXPECT_FALSE(equal_secrets("abcabc", "abc"));
  EXPECT_FALSE(equal_secrets("", "abc"));
  EXPECT_FALSE(equal_secrets("a", ""));
}

TEST(HttpMessage, KnowsTheMachinesOwnNames) {
  for (const char* own : {"localhost", "LocalHost:80", "127.0.0.1", "127.8.9.255:1", "[::1]",
                          "[::1]:8080", "[0:0::1]"}) {
    EXPECT_TRUE(is_loopback(host_of(own))) << own;
  }
  for (const char* other :
       {"127.0.0.1.attacker.example", "127.attacker.example:80", "127.0.0.1:80@a.example", "127.",
        "127.1", "0127.0.0.1", "128.0.0.1", "localhost.attacker.example", "localhosts", "::1",
        "[::1", "[::1].attacker.example", "[::2]", "[127.0.0.1.a]", "", ":80"}) {
    EXPECT_FALSE(is_loopback(host_of(other))) << other;
  }
}

TEST(HttpMessage, AnswersSayWhereTheyEnd) {
  HttpResponse response;
  const auto has = [&response](const BodyEnd& end, const char* part) {
    return response_head(response, true, end).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has({BodyEnd::AfterLength, 7}, "Content-Length: 7\r\n"));
  EXPECT_TRUE(has({BodyEnd::InChunks}, "Transfer-Encoding: chunked\r\n"));
  EXPECT_FALSE(has({BodyEnd::WithConnection}, "Transfer-Encoding"));
  EXPECT_FALSE(has({BodyEnd::WithConnection}, "Content-Length"));
  response.status = 204;
  EXPECT_FALSE(has({BodyEnd::AfterLength, 0}, "Content-Length"));
}

TEST(HttpConnection, ReadsRequestsOneAfterTheOther) {
  Received received(
      "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
      "\r\nPOST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nde\r\n1;x\r\nf\r\n0\r\nt: u\r\n\r\n"
      "GET /c HTTP/1.1\r\nHost: h\r\n\r\ngarbage\r\n\r\n");
  for (const auto& [path, body] : {std::pair{"/a", "abc"}, {"/b", "def"}, {"/c", ""}}) {
    ASSERT_EQ(received.read(), HttpConnection::Read::Request);
    EXPECT_EQ(received.request.path, path);
    EXPECT_EQ(received.request.body, body);
  }
  EXPECT_EQ(received.read(), HttpConnection::Read::Failed);
  EXPECT_EQ(received.failure.status, 400);
}

TEST(HttpConnection, RefusesWhatIsTooLarge) {
  HttpLimits limits;
  limits.body_bytes = 10;
  limits.head_bytes = 100;
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& [bytes, status] : std::vector<std::pair<std::string, int>>{
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n", 413},
           {chunked + "b\r\n", 413},
           {chunked + "a\r\n0123456789\r\n1\r\n", 413},
           {chunked + "ffffffffffffffff\r\n", 413},
           {chunked + "zz\r\n", 400},
           {chunked + "1\r\nabc", 400},
           {chunked + std::string(5000, '1'), 400},
           {"GET / HTTP/1.1\r\na: " + std::string(200, 'b'), 431},
           {std::string(1 << 20, 'x'), 431}}) {
    Received received(bytes, limits);
    ASSERT_EQ(received.read(), HttpConnection::Read::Failed) << bytes.substr(0, 100);
    EXPECT_EQ(received.failure.status, status) << bytes.substr(0, 100);
  }
}

TEST(HttpConnection, EndsWhereTheClientDoes) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const std::string& bytes :
       {std::string(), std::string("GET / HT"), head + "Content-Length: 5\r\n\r\nabc",
        head + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    EXPECT_EQ(Received(bytes).read(), HttpConnection::Read::Closed) << bytes;
  }
}

// Such a client reads what it asked for: `printf ... | nc` is one.
TEST(HttpConnection, AClientThatSendsNoMoreIsNotGone) {
  for (const std::string version : {"1.1", "1.0"}) {
    Received received("GET / HTTP/" + version + "\r\nHost: h\r\n\r\n");
    ASSERT_EQ(received.read(), HttpConnection::Read::Request);
    received.sender.join();  // the end has come
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(received.connection->is_gone());
    EXPECT_TRUE(received.connection->send({}, false));
    EXPECT_FALSE(received.connection->is_gone());
    received.connection->shut_down();
    EXPECT_TRUE(received.connection->is_gone());
    std::string text(1 << 10, '\0');
    const ssize_t n = recv(received.client, text.data(), text.size(), MSG_WAITALL);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    // What a closed socket would have answered with a reset, once.
    const size_t at = text.find("HTTP/1.1 200 ");
    EXPECT_EQ(text.substr(0, at), version == "1.1" ? "HTTP/1.1 100 Continue\r\n\r\n" : "");
    EXPECT_EQ(text.find("100 Continue", at), std::string::npos);
  }
}

TEST(HttpConnection, TheSystemAsksWhetherTheClientIsThere) {
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(made, 0);
  const HttpConnection connection(made, {}, {});
  const auto option = [made](int level, int name) {
    int value = 0;
    socklen_t size = sizeof(value);
    EXPECT_EQ(getsockopt(made, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT), 60);
}

TEST(HttpConnection, SurvivesAnything) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"GET / HTTP/1.1",
                                           "\r\n",
                                           "\r\n\r\n",
                                           "Host: h",
                                           "Content-Length: ",
                                           "Transfer-Encoding: chunked",
                                           "5",
                                           "ffff",
                                           ":",
                                           " ",
                                           "\n",
                                           std::string(1, '\0'),
                                           "\xff",
                                           "POST /",
                                           "abcdefgh",
                                           "Expect: 100-continue"};
  for (int i = 0; i < 400; ++i) {
    std::string bytes;
    for (unsigned n = random() % 30; n != 0; --n) bytes += pieces[random() % pieces.size()];
    Received received(bytes);
    for (int k = 0; k < 20 && received.read() == HttpConnection::Read::Request; ++k) {
      EXPECT_LE(received.request.body.size(), bytes.size());
    }
  }
}

TEST(HttpConnection, AnswersABodyThatDoesNotComeInTime) {
  HttpTimeouts timeouts;
  timeouts.body = std::chrono::milliseconds(3);
  for (int i = 0; i < 20; ++i) {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    HttpConnection connection(sockets[1], {}, timeouts);
    const std::string bytes = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{";
    ASSERT_EQ(send(sockets[0], bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
    HttpRequest request;
    HttpFailure failure;
    EXPECT_EQ(connection.read(request, failure), HttpConnection::Read::Failed);
    EXPECT_EQ(failure.status, 408);
    close(sockets[0]);
  }
}

namespace {

/// What a server on this machine sends to a client of it, up to the end of the connection.
std::string answer_of(const HttpServer& server) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  send(client, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char bytes[1024];
  for (ssize_t n; (n = recv(client, bytes, sizeof(bytes), 0)) > 0;) {
    answer.append(bytes, static_cast<size_t>(n));
  }
  close(client);
  return answer;
}

}  // namespace

TEST(HttpServer, ExceptionsEndOneConnection) {
  HttpOptions options;
  options.port = 0;
  std::atomic<int> n_requests{0};
  HttpServer server(options,
                    [&](const HttpRequest& request, HttpConnection& connection) {
                      if (++n_requests == 1) throw std::bad_alloc();
                      return connection.send(HttpResponse(), request.keep_alive);
                    },
                    {});
  ASSERT_EQ(server.bind(), "");
  std::thread running([&] { server.run(); });
  EXPECT_EQ(answer_of(server), "");
  EXPECT_EQ(answer_of(server).substr(0, 15), "HTTP/1.1 200 OK");
  server.stop();
  running.join();
}

TEST(HttpServer, RefusesAllWhereNoConnectionIsAllowed) {
  HttpOptions options;
  options.port = 0;
  options.max_connections = 0;
  HttpServer server(options, {}, [](const HttpFailure& failure) { return failure.message; });
  ASSERT_EQ(server.bind(), "");
  std::thread running([&] { server.run(); });
  while (server.n_refused() == 0) answer_of(server);
  server.stop();
  running.join();
}

TEST(HttpServer, KnowsWhetherOthersReachIt) {
  // However the address is written: a local server has the hosts of requests checked.
  for (const auto& [host, local] :
       {std::pair{"127.0.0.1", true}, {"127.1", true}, {"LOCALHOST", true}, {"0.0.0.0", false}}) {
    HttpOptions options;
    options.host = host;
    options.port = 0;
    HttpServer server(options, {}, {});
    ASSERT_EQ(server.bind(), "") << host;
    EXPECT_EQ(server.is_local(), local) << host;
  }
}
