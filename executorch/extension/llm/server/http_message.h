/// HTTP/1.1 messages: what a server reads and writes (RFC 9112).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace executorch::extension::llm::server {

/// What a client may send.
struct HttpLimits {
  size_t head_bytes = 16 << 10;
  size_t n_headers = 64;
  size_t body_bytes = 4 << 20;
};

struct HttpRequest {
  std::string method;
  /// Without the query.
  std::string path;
  /// Names in lower case.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// Whether another request may follow on the connection.
  bool keep_alive = true;
  /// Not HTTP/1.0, which knows neither chunks nor, for sure, hosts.
  bool is_1_1 = true;

  /// Empty where there is none.
  std::string_view header(std::string_view name) const;
};

/// How the body comes.
struct BodyForm {
  bool chunked = false;
  size_t length = 0;
  bool expects_continue = false;
};

/// A request that is answered with this status; the connection is then closed. 0: none.
struct HttpFailure {
  int status = 0;
  std::string message;
};

/// Reads the lines of a request, from the first to the empty one. `head` ends with that.
HttpFailure parse_head(std::string_view head, const HttpLimits& limits, HttpRequest& request,
                       BodyForm& body);

/// The length on the line of a chunk, without its end. False if it is none.
bool parse_chunk_length(std::string_view line, uint64_t& length);

const char* reason_phrase(int status);

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// How long the body of a response is.
struct BodyEnd {
  enum Kind { AfterLength, InChunks, WithConnection };
  Kind kind;
  size_t length = 0;
};

/// A response's lines up to the empty one.
std::string response_head(const HttpResponse& response, bool keep_alive, const BodyEnd& end);

/// The host of a Host header's value, without brackets, in lower case. Empty if it is not a host
/// with or without a port.
std::string host_of(std::string_view authority);
/// Whether it is a name or address of the machine itself: localhost, 127.x.y.z or ::1. Names that
/// only begin like that may lead anywhere.
bool is_loopback(const std::string& host);

/// Whether the two are equal, in a time that depends on the length of `given` only.
bool equal_secrets(std::string_view given, std::string_view expected);

}  // namespace executorch::extension::llm::server
