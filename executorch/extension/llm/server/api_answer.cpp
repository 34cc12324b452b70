#include <executorch/extension/llm/server/api.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <cmath>

namespace executorch::extension::llm::server {
namespace {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.n_prompt},
          {"completion_tokens", usage.n_completion},
          {"total_tokens", usage.n_prompt + usage.n_completion},
          {"prompt_tokens_details", {{"cached_tokens", usage.n_cached}}}};
}

Json call_json(const ToolCall& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_body(const ApiError& error) {
  const char* type = error.status == 401   ? "authentication_error"
                     : error.status == 429 ? "rate_limit_error"
                     : error.status >= 500 ? "server_error"
                                           : "invalid_request_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return json_text({{"error",
                     {{"message", error.message},
                      {"type", type},
                      {"param", or_null(error.param)},
                      {"code", or_null(error.code)}}}});
}

const char* finish_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::Length:
    case FinishReason::ContextFull:
    case FinishReason::Stopped:
      return "length";
    default:
      return "stop";
  }
}

size_t CharacterPlaces::add(const std::string& piece) {
  namespace utf8 = tokenizers::utf8;
  const size_t begin = begun_.size();
  begun_ += piece;
  const char* const end = begun_.data() + begun_.size();
  const size_t n_whole = begun_.size() - utf8::incomplete_tail(begun_);
  size_t place = n_characters_;
  size_t at = 0;
  while (at < n_whole) {
    at += utf8::decode(begun_.data() + at, end).length;
    ++n_characters_;
    if (at <= begin) place = n_characters_;  // what had begun ended without the piece
  }
  begun_.erase(0, at);
  return place;
}

ApiAnswer::ApiAnswer(const ApiRequest& request, const ServedModel& served, std::string id,
                     std::string model, int64_t created)
    : request_(request),
      served_(served),
      id_((request.chat ? "chatcmpl-" : "cmpl-") + std::move(id)),
      model_(std::move(model)),
      created_(created) {}

Json ApiAnswer::head(bool chunk) const {
  const char* object = !request_.chat ? "text_completion"
                       : chunk        ? "chat.completion.chunk"
                                      : "chat.completion";
  Json head = {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
  // If usage is asked for, all parts of a stream before the last one have a null usage.
  if (chunk && request_.include_usage) head["usage"] = nullptr;
  return head;
}

Json ApiAnswer::choice(const char* finish_reason) const {
  return {{"index", index_},
          {"logprobs", nullptr},
          {"finish_reason", finish_reason == nullptr ? Json() : Json(finish_reason)}};
}

Json ApiAnswer::chat_logprobs(const std::vector<TokenLogprob>& logprobs) const {
  const auto entry = [this](uint64_t token, float logprob) {
    const std::string text = served_.decode(token);
    Json bytes = Json::array();
    for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
    return Json{{"token", text}, {"logprob", logprob}, {"bytes", bytes}};
  };
  Json content = Json::array();
  for (const TokenLogprob& one : logprobs) {
    Json all = entry(one.token, one.logprob);
    all["top_logprobs"] = Json::array();
    for (const auto& [token, logprob] : one.likeliest) {
      all["top_logprobs"].push_back(entry(token, logprob));
    }
    content.push_back(all);
  }
  return {{"content", content}, {"refusal", nullptr}};
}

Json ApiAnswer::logprobs_json(const std::vector<TokenLogprob>& logprobs) {
  if (request_.n_logprobs < 0) return nullptr;
  if (request_.chat) return chat_logprobs(logprobs);
  Json result = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
  for (const TokenLogprob& one : logprobs) {
    const std::string text = served_.decode(one.token);
    Json likeliest = std::isnan(one.logprob) ? Json() : Json::object();
    for (const auto& [token, logprob] : one.likeliest) {
      // Several tokens may be incomplete characters, which have the same text here. The first one,
      // the likeliest, is kept.
      likeliest.emplace(tokenizers::utf8::valid(served_.decode(token)), logprob);
    }
    result["tokens"].push_back(text);
    result["token_logprobs"].push_back(one.logprob);  // NaN is written as null
    result["top_logprobs"].push_back(likeliest);
    result["text_offset"].push_back(places_.add(text));
  }
  return result;
}

void ApiAnswer::begin_choice(int index) {
  index_ = index;
  places_ = CharacterPlaces();
}

void ApiAnswer::add(const std::string& text, const char* finish_reason,
                    const std::vector<TokenLogprob>& logprobs, const std::vector<ToolCall>& calls) {
  Json one = choice(finish_reason);
  if (request_.chat) {
    Json& message = one["message"];
    message = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
    if (!calls.empty() && text.empty()) message["content"] = nullptr;
    for (const ToolCall& call : calls) message["tool_calls"].push_back(call_json(call));
  } else {
    one["text"] = text;
  }
  one["logprobs"] = logprobs_json(logprobs);
  choices_.push_back(std::move(one));
}

std::string ApiAnswer::whole(const Usage& usage) const {
  Json answer = head(false);
  answer["choices"] = choices_;
  answer["usage"] = usage_json(usage);
  return json_text(answer);
}

std::string ApiAnswer::first() const {
  Json answer = head(true), one = choice(nullptr);
  one["delta"] = {{"role", "assistant"}, {"content", ""}};
  answer["choices"] = Json::array({one});
  return json_text(answer);
}

std::string ApiAnswer::part(const std::string& text, const std::vector<TokenLogprob>& logprobs) {
  Json answer = head(true), one = choice(nullptr);
  if (request_.chat) {
    one["delta"] = {{"content", text}};
  } else {
    one["text"] = text;
  }
  one["logprobs"] = logprobs_json(logprobs);
  answer["choices"] = Json::array({one});
  return json_text(answer);
}

std::string ApiAnswer::calls_part(const std::vector<ToolCall>& calls, size_t first) const {
  Json answer = head(true), one = choice(nullptr), list = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    list.push_back(call_json(calls[i]));
    list.back()["index"] = first + i;
  }
  one["delta"] = {{"tool_calls", std::move(list)}};
  answer["choices"] = Json::array({one});
  return json_text(answer);
}

std::string ApiAnswer::last(const char* finish_reason) const {
  Json answer = head(true), one = choice(finish_reason);
  if (request_.chat) {
    one["delta"] = Json::object();
  } else {
    one["text"] = "";
  }
  answer["choices"] = Json::array({one});
  return json_text(answer);
}

std::string ApiAnswer::usage_part(const Usage& usage) const {
  Json answer = head(true);
  answer["choices"] = Json::array();
  answer["usage"] = usage_json(usage);
  return json_text(answer);
}

}  // namespace executorch::extension::llm::server
