/// The common protocol of chat completions and completions: requests that are read and checked, and
/// the JSON of answers.
#pragma once

#include <executorch/extension/llm/server/served_model.h>
#include <executorch/extension/llm/server/tool_calls.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::llm::server {

using Json = nlohmann::json;

/// What a client is told instead of an answer.
struct ApiError {
  int status;
  std::string message;
  /// The part of the request that is wrong, as "messages[0].role"; may be empty.
  std::string param;
  std::string code;
};
std::string error_body(const ApiError& error);

/// A constraint on the answer.
struct ResponseFormat {
  std::string type;  // "regex" or "json_schema"; empty: none
  std::string text;
  /// The part of the request that asks for it.
  std::string param = "response_format";
};

/// What a completion continues: a text, or tokens.
struct Prompt {
  std::string text;
  std::vector<uint64_t> tokens;
};

struct ApiRequest {
  bool chat = false;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  /// Of completions, one at least; a chat has messages instead.
  std::vector<Prompt> prompts;
  std::vector<ChatMessage> messages;
  /// Whether a message is a call of a function or the result of one.
  bool has_calls = false;
  /// JSON, a list of functions that the model may call; empty: none.
  std::string tools;
  /// JSON, an object of variables for the chat template; may be empty.
  std::string template_variables;
  /// How many answers to give to each prompt, and of how many they are the likeliest.
  int n_choices = 1;
  int best_of = 1;
  ResponseFormat format;
  SamplingOptions sampling;
  bool seed_given = false;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<int64_t> max_tokens;
  /// Likeliest tokens to tell at each place; -1: no probabilities at all.
  int n_logprobs = -1;
};

/// Reads the body of a request. Throws ApiError for what cannot be done.
ApiRequest parse_request(const std::string& body, bool chat, const std::string& model,
                         int64_t vocabulary_size);

/// A chosen token and what might have been in its place.
struct TokenLogprob {
  uint64_t token = 0;
  /// NaN for the first token of a text, which nothing tells.
  float logprob = 0;
  std::vector<std::pair<uint64_t, float>> likeliest;
};

struct Usage {
  int64_t n_prompt = 0, n_cached = 0, n_completion = 0;
};

/// Computes the offset of each piece of a text, in characters; a piece may begin or end within one.
class CharacterPlaces {
 public:
  /// The offset of the next piece; if the piece begins within a character, the offset of that
  /// character.
  size_t add(const std::string& piece);

 private:
  size_t n_characters_ = 0;
  std::string begun_;  // of a character that has not ended
};

/// Makes the JSON objects of one answer: one for the whole answer, or parts of a stream.
class ApiAnswer {
 public:
  ApiAnswer(const ApiRequest& request, const ServedModel& served, std::string id, std::string model,
            int64_t created);

  /// What follows is of that choice, of those that the request asks for.
  void begin_choice(int index);
  /// Adds the choice to the whole answer. `text` is what it says beside its calls of functions.
  void add(const std::string& text, const char* finish_reason,
           const std::vector<TokenLogprob>& logprobs, const std::vector<ToolCall>& calls = {});
  std::string whole(const Usage& usage) const;
  /// The first part of a chat, which says who speaks.
  std::string first() const;
  std::string part(const std::string& text, const std::vector<TokenLogprob>& logprobs);
  /// The part of a chat that has calls, of which the first is number `first` of the choice.
  std::string calls_part(const std::vector<ToolCall>& calls, size_t first) const;
  std::string last(const char* finish_reason) const;
  std::string usage_part(const Usage& usage) const;

 private:
  Json head(bool chunk) const;
  Json choice(const char* finish_reason) const;
  Json logprobs_json(const std::vector<TokenLogprob>& logprobs);
  Json chat_logprobs(const std::vector<TokenLogprob>& logprobs) const;

  const ApiRequest& request_;
  const ServedModel& served_;
  const std::string id_, model_;
  const int64_t created_;
  int index_ = 0;
  Json choices_ = Json::array();
  CharacterPlaces places_;
};

/// The protocol's name of a reason: "stop" or "length".
const char* finish_reason(FinishReason reason);

/// JSON text; bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& json);

}  // namespace executorch::extension::llm::server
