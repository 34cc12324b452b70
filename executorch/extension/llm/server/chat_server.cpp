// What is answered at which address, and to whom.

#include <executorch/extension/llm/server/chat_server.h>

#include <strings.h>

#include <ctime>

namespace executorch::extension::llm::server {

extern const char kChatPage[];

namespace {

HttpResponse page() {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.body = kChatPage;
  // Nothing from elsewhere, and no other page may show this one.
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
      "connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'");
  return response;
}

bool makes_text(const std::string& path) {
  return path == "/v1/chat/completions" || path == "/v1/completions";
}

HttpResponse error_response(const ApiError& error, const std::string& path) {
  HttpResponse response;
  response.status = error.status;
  response.body = error_body(error);
  if (error.status == 503 || error.status == 429) response.headers.emplace_back("Retry-After", "1");
  if (error.status == 405) {
    response.headers.emplace_back("Allow", makes_text(path) ? "POST" : "GET, HEAD");
  }
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

std::string body_of_failure(const HttpFailure& failure) {
  return error_body(
      {failure.status, failure.message, "", failure.status == 503 ? "overloaded" : "invalid_http"});
}

}  // namespace

ChatServer::ChatServer(ServedModel& model, ServerOptions options)
    : model_(model),
      options_(std::move(options)),
      created_(std::time(nullptr)),
      pool_(model, options_.n_sessions, options_.n_waiting),
      constraints_(model),
      http_(
          options_.http,
          [this](const HttpRequest& request, HttpConnection& connection) {
            return handle(request, connection);
          },
          [this](const HttpFailure& failure) {
            metrics_.count_response(failure.status);
            return body_of_failure(failure);
          }) {}

void ChatServer::run(std::chrono::milliseconds grace) {
  http_.run();
  http_.close_connections(grace, [this] { pool_.stop(); });
}

bool ChatServer::handle(const HttpRequest& request, HttpConnection& connection) {
  const bool head = request.method == "HEAD";
  try {
    check_access(request);
    if (makes_text(request.path)) {
      if (request.method != "POST") throw ApiError{405, "POST is expected", "", ""};
      return generate(request, connection, request.path == "/v1/chat/completions");
    }
    const HttpResponse response = answer(request);
    metrics_.count_response(response.status);
    return connection.send(response, request.keep_alive, !head);
  } catch (const ApiError& error) {
    metrics_.count_response(error.status);
    return connection.send(error_response(error, request.path), request.keep_alive, !head);
  } catch (const std::exception& error) {
    metrics_.count_response(500);
    const ApiError failure{500, std::string("the server failed: ") + error.what(), "", ""};
    return connection.send(error_response(failure, request.path), request.keep_alive, !head);
  }
}

/// Who may ask. Pages of other sites, which a browser would let send requests to a server on its
/// own machine, may not.
void ChatServer::check_access(const HttpRequest& request) const {
  const std::string_view authority = request.header("host");
  const std::string host = host_of(authority);
  if (http_.is_local() && !authority.empty() && !is_loopback(host) &&
      strcasecmp(host.c_str(), options_.http.host.c_str()) != 0) {
    throw ApiError{403, "this server answers on the names of its own machine only", "", ""};
  }
  const std::string_view origin = request.header("origin");
  if (const size_t slashes = origin.find("://"); slashes != std::string_view::npos) {
    if (origin.substr(slashes + 3) != request.header("host")) {
      throw ApiError{403, "pages of other sites may not use this server", "", ""};
    }
  } else if (!origin.empty()) {
    throw ApiError{403, "pages without an address may not use this server", "", ""};
  }
  const bool open =
      request.path == "/" || request.path == "/health" || request.path == "/favicon.ico";
  if (options_.api_key.empty() || open) return;
  const std::string_view given = request.header("authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (given.substr(0, kScheme.size()) != kScheme ||
      !equal_secrets(given.substr(kScheme.size()), options_.api_key)) {
    throw ApiError{401, "the API key is missing or wrong", "", "invalid_api_key"};
  }
}

HttpResponse ChatServer::answer(const HttpRequest& request) {
  const std::string& path = request.path;
  const bool models = path == "/v1/models" || path.substr(0, 11) == "/v1/models/";
  const bool known =
      models || path == "/" || path == "/health" || path == "/metrics" || path == "/favicon.ico";
  if (!known) throw ApiError{404, "there is nothing at " + path, "", "not_found"};
  if (request.method != "GET" && request.method != "HEAD") {
    throw ApiError{405, "GET is expected", "", ""};
  }
  if (path == "/") return page();
  if (models) return model_list(path);
  HttpResponse response;
  if (path == "/health") {
    response.body = "{\"status\":\"ok\"}";
  } else if (path == "/metrics") {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_text();
  } else {
    response.status = 204;
    response.content_type = "";
  }
  return response;
}

HttpResponse ChatServer::model_list(const std::string& path) const {
  const Json model = {{"id", options_.model_name},
                      {"object", "model"},
                      {"created", created_},
                      {"owned_by", "local"},
                      {"context_length", model_.context_length()}};
  HttpResponse response;
  if (path == "/v1/models") {
    response.body = json_text({{"object", "list"}, {"data", Json::array({model})}});
  } else if (path.substr(11) == options_.model_name) {
    response.body = json_text(model);
  } else {
    throw ApiError{404, "there is no model '" + path.substr(11) + "'", "model", "model_not_found"};
  }
  return response;
}

std::string ChatServer::metrics_text() const {
  const auto value = [](size_t n) { return static_cast<double>(n); };
  return metrics_.text(std::array<Metrics::Gauge, 6>{
      {{"connections", "Connections that are open.", value(http_.n_connections())},
       {"connections_refused", "Connections that were refused.", value(http_.n_refused())},
       {"sessions", "Texts that the model remembers.", value(pool_.n_sessions())},
       {"sessions_busy", "Of these, those being continued.", value(pool_.n_busy())},
       {"requests_waiting", "Requests that wait for one.", value(pool_.n_waiting())},
       {"requests_running", "Requests that are worked on.",
        static_cast<double>(metrics_.n_running.load())}}});
}

}  // namespace executorch::extension::llm::server
