/// HTTP/1.1 messages: what a server reads and writes (RFC 9112).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace executorch::extension::llm::server {

/// Limits of a request.
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

/// How the length of a request's body is given.
struct BodyForm {
  bool chunked = false;
  size_t length = 0;
  bool expects_continue = false;
};

/// An error that is answered with this status before the connection is closed. 0: no error.
struct HttpFailure {
  int status = 0;
  std::string message;
};

/// Parses the request line and the headers. `head` ends with the empty line.
HttpFailure parse_head(std::string_view head, const HttpLimits& limits, HttpRequest& request,
                       BodyForm& body);

/// Parses the length on a chunk's first line, which is given without its line break. False if there
/// is no valid length.
bool parse_chunk_length(std::string_view line, uint64_t& length);

const char* reason_phrase(int status);

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// How the length of a response's body is given.
struct BodyEnd {
  enum Kind { AfterLength, InChunks, WithConnection };
  Kind kind;
  size_t length = 0;
};

/// The status line and the headers of a response, with the empty line.
std::string response_head(const HttpResponse& response, bool keep_alive, const BodyEnd& end);

/// The host name in a Host header, in lower case and without port and brackets. Empty if the value
/// is not valid.
std::string host_of(std::string_view authority);
/// Whether `host` is this machine: localhost, 127.x.y.z or ::1. A name that only begins like one of
/// these is not.
bool is_loopback(const std::string& host);

/// Compares secrets in a time that depends on the length of `given` only.
bool equal_secrets(std::string_view given, std::string_view expected);

}  // namespace executorch::extension::llm::server
