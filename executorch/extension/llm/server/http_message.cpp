#include <executorch/extension/llm/server/http_message.h>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace executorch::extension::llm::server {
namespace {

constexpr size_t kMaxTarget = 4096;

bool is_token_character(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

/// No control characters but tabs.
bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 ? c != 0x7f : c == '\t';
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

HttpFailure parse_request_line(std::string_view line, HttpRequest& request) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return {400, "not a request line"};
  const std::string_view version = line.substr(last + 1);
  std::string_view target = line.substr(first + 1, last - first - 1);
  request.method = line.substr(0, first);
  if (!is_token(request.method)) return {400, "not a method"};
  if (version.substr(0, 5) != "HTTP/") return {400, "not a version of HTTP"};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return {505, "HTTP/1.1 is expected"};
  request.keep_alive = request.is_1_1 = version == "HTTP/1.1";
  if (target.size() > kMaxTarget) return {414, "the address is too long"};
  const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f; };
  if (target.empty() || std::any_of(target.begin(), target.end(), is_odd)) {
    return {400, "not an address"};
  }
  if (target.substr(0, 7) == "http://") {
    const size_t slash = target.find('/', 7);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  if (target[0] != '/' && target != "*") return {400, "not an address"};
  request.path = target.substr(0, target.find_first_of("?#"));
  return {};
}

HttpFailure read_length(std::string_view value, bool& known, size_t& length) {
  size_t given = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), given);
  if (value.empty() || parsed.ec == std::errc::invalid_argument ||
      parsed.ptr != value.data() + value.size() || value[0] == '-') {
    return {400, "Content-Length is not a number"};
  }
  if (parsed.ec != std::errc()) return {413, "the body is too large"};
  if (known && length != given) return {400, "two different lengths of the body"};
  known = true;
  length = given;
  return {};
}

/// What the headers say of the connection and the body.
HttpFailure read_framing(HttpRequest& request, const HttpLimits& limits, BodyForm& body) {
  bool known = false;
  int n_hosts = 0;
  for (const auto& [name, value] : request.headers) {
    if (name == "host") {
      ++n_hosts;
    } else if (name == "connection") {
      const std::string options = lower(value);
      if (options.find("close") != std::string::npos) request.keep_alive = false;
      if (options.find("keep-alive") != std::string::npos) request.keep_alive = true;
    } else if (name == "content-length") {
      const HttpFailure failure = read_length(value, known, body.length);
      if (failure.status != 0) return failure;
    } else if (name == "transfer-encoding") {
      if (body.chunked) return {400, "two Transfer-Encodings"};
      if (lower(value) != "chunked") return {501, "a Transfer-Encoding that is not chunked"};
      body.chunked = true;
    } else if (name == "content-encoding" && lower(value) != "identity") {
      return {415, "compressed bodies are not supported"};
    } else if (name == "expect") {
      if (lower(value) != "100-continue") return {417, "an expectation that is not 100-continue"};
      body.expects_continue = true;
    }
  }
  // Who may ask is decided by the host: there must be no doubt about it.
  if (n_hosts > 1) return {400, "two Hosts"};
  if (n_hosts == 0 && request.is_1_1) return {400, "the Host is missing"};
  // A message with both is how requests are smuggled past proxies.
  if (known && body.chunked) return {400, "both Content-Length and Transfer-Encoding"};
  if (body.length > limits.body_bytes) return {413, "the body is too large"};
  return {};
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (known == name) return value;
  }
  return {};
}

HttpFailure parse_head(std::string_view head, const HttpLimits& limits, HttpRequest& request,
                       BodyForm& body) {
  bool first = true;
  while (true) {
    const size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return {400, "a line without its end"};
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (first) {
      const HttpFailure failure = parse_request_line(line, request);
      if (failure.status != 0) return failure;
      first = false;
      continue;
    }
    if (line.empty()) break;
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || !is_token(name)) return {400, "not a header"};
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!is_field_value(value)) return {400, "control characters in a header"};
    if (request.headers.size() == limits.n_headers) return {431, "too many headers"};
    request.headers.emplace_back(lower(name), value);
  }
  return read_framing(request, limits, body);
}

bool parse_chunk_length(std::string_view line, uint64_t& length) {
  line = trimmed(line.substr(0, line.find(';')));
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), length, 16);
  return !line.empty() && line[0] != '-' && parsed.ec == std::errc() &&
         parsed.ptr == line.data() + line.size();
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string response_head(const HttpResponse& response, bool keep_alive, const BodyEnd& end) {
  std::string head =
      "HTTP/1.1 " + std::to_string(response.status) + " " + reason_phrase(response.status) + "\r\n";
  if (!response.content_type.empty()) head += "Content-Type: " + response.content_type + "\r\n";
  if (end.kind == BodyEnd::InChunks) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (end.kind == BodyEnd::AfterLength && response.status != 204) {  // which has no body
    head += "Content-Length: " + std::to_string(end.length) + "\r\n";
  }
  head += "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

std::string host_of(std::string_view authority) {
  std::string_view host, port;
  if (!authority.empty() && authority[0] == '[') {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return "";
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    host = authority.substr(0, authority.find(':'));
    port = authority.substr(host.size());
  }
  if (!port.empty() &&
      (port[0] != ':' || port.find_first_not_of("0123456789", 1) != std::string_view::npos)) {
    return "";
  }
  return lower(host);
}

bool is_loopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  // inet_pton takes four numbers only, no shorter forms.
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return lower(host) == "localhost";
}

bool equal_secrets(std::string_view given, std::string_view expected) {
  volatile unsigned char difference = given.size() == expected.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference = difference | static_cast<unsigned char>(given[i] ^ other);
  }
  return difference == 0;
}

}  // namespace executorch::extension::llm::server
