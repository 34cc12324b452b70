#include <executorch/extension/llm/server/api.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace executorch::extension::llm::server {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxStops = 16;
constexpr int64_t kMaxChoices = 128;

[[noreturn]] void refuse(const std::string& param, const std::string& what,
                         const std::string& code = "invalid_value") {
  throw ApiError{400, param.empty() ? what : "'" + param + "': " + what, param, code};
}

Json parse_json(const std::string& body) {
  try {
    return Json::parse(body, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) refuse("", "the body is nested too deeply", "invalid_json");
      return true;
    });
  } catch (const Json::exception& error) {
    refuse("", std::string("the body is not JSON: ") + error.what(), "invalid_json");
  }
}

/// Takes the known fields out of a request; the fields that remain are unknown ones.
class Fields {
 public:
  explicit Fields(Json object) : object_(std::move(object)) {}

  /// Null counts as missing.
  Json take(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) return nullptr;
    Json value = std::move(*found);
    object_.erase(found);
    return value;
  }

  double number(const char* name, double otherwise, double min, double max) {
    const Json value = take(name);
    if (value.is_null()) return otherwise;
    if (!value.is_number()) refuse(name, "a number is expected", "invalid_type");
    const double given = value.get<double>();
    if (!(given >= min && given <= max)) {
      const auto shown = [](double bound) { return Json(bound).dump(); };
      refuse(name, "it must be from " + shown(min) + " to " + shown(max));
    }
    return given;
  }

  std::optional<int64_t> integer(const char* name, int64_t min, int64_t max) {
    const Json value = take(name);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number_integer()) refuse(name, "an integer is expected", "invalid_type");
    const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max) {
      refuse(name, "it must be from " + std::to_string(min) + " to " + std::to_string(max));
    }
    return value.get<int64_t>();
  }

  bool boolean(const char* name, bool otherwise) {
    const Json value = take(name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) refuse(name, "true or false is expected", "invalid_type");
    return value.get<bool>();
  }

  /// Refuses `name` unless it is missing or `harmless`.
  void expect_only(const char* name, const Json& harmless) {
    const Json value = take(name);
    if (!value.is_null() && value != harmless) refuse(name, "not supported", "unsupported_value");
  }

  const Json& rest() const { return object_; }

 private:
  Json object_;
};

std::string text_of_content(const Json& content, const std::string& param) {
  if (content.is_string()) return content;
  if (!content.is_array()) refuse(param, "a string or an array of parts is expected");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const std::string place = param + "[" + std::to_string(i) + "]";
    if (!part.is_object() || part.value("type", Json()) != "text") {
      refuse(place, "only parts of type 'text' are supported", "unsupported_value");
    }
    if (!part.contains("text") || !part["text"].is_string()) refuse(place, "it has no text");
    text += part["text"];
  }
  return text;
}

std::vector<ChatMessage> parse_messages(const Json& messages, bool has_tools) {
  if (!messages.is_array() || messages.empty()) {
    refuse("messages", "an array with at least one message is expected", "invalid_type");
  }
  std::vector<ChatMessage> result;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string place = "messages[" + std::to_string(i) + "]";
    const Json& message = messages[i];
    if (!message.is_object()) refuse(place, "an object is expected", "invalid_type");
    std::string role = message.contains("role") && message["role"].is_string()
                           ? message["role"].get<std::string>()
                           : std::string();
    if (role == "developer") role = "system";
    const bool is_result = role == "tool" && has_tools;
    if (role != "system" && role != "user" && role != "assistant" && !is_result) {
      refuse(place + ".role",
             "'system', 'developer', 'user' or 'assistant' is expected, or 'tool' with 'tools'");
    }
    // Clients that send an answer back add what it did not have.
    const Json calls = message.value("tool_calls", Json());
    if (!calls.is_null() && calls != Json::array()) {
      refuse(place + ".tool_calls", "not supported: a call is the text in 'content'",
             "unsupported_value");
    }
    result.push_back({role, text_of_content(message.value("content", Json()), place + ".content")});
  }
  return result;
}

/// Takes the format out of `fields`; `body` is what they were read from.
ResponseFormat parse_format(Fields& fields, const std::string& body) {
  const Json format = fields.take("response_format");
  if (format.is_null()) return {};
  const std::string place = "response_format";
  if (!format.is_object()) refuse(place, "an object is expected", "invalid_type");
  const Json type = format.value("type", Json());
  if (type == "text") return {};
  if (type == "json_object") return {"json_schema", R"({"type":"object"})"};
  if (type == "json_schema") {
    const Json wrapper = format.value("json_schema", Json());
    if (!wrapper.is_object() || !wrapper.contains("schema")) {
      refuse(place + ".json_schema", "an object with a 'schema' is expected", "invalid_type");
    }
    // The order of the request is kept: properties are written in it.
    const auto ordered = nlohmann::ordered_json::parse(body);
    return {"json_schema", ordered["response_format"]["json_schema"]["schema"].dump()};
  }
  if (type == "regex") {
    const Json pattern = format.value("pattern", Json());
    if (!pattern.is_string()) refuse(place + ".pattern", "a string is expected", "invalid_type");
    return {"regex", pattern};
  }
  refuse(place + ".type", "'text', 'json_object', 'json_schema' or 'regex' is expected");
}

void parse_stop(const Json& stop, std::vector<std::string>& stops) {
  if (stop.is_null()) return;
  for (const Json& one : stop.is_array() ? stop : Json::array({stop})) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty()) {
      refuse("stop", "a string that is not empty, or an array of these, is expected");
    }
    stops.push_back(one);
  }
  if (stops.size() > kMaxStops) refuse("stop", "at most 16 are supported");
}

void parse_sampling(Fields& fields, SamplingOptions& sampling) {
  const auto as_float = [](double value) { return static_cast<float>(value); };
  sampling.temperature = as_float(fields.number("temperature", 1, 0, 2));
  sampling.top_p = as_float(fields.number("top_p", 1, 0, 1));
  sampling.min_p = as_float(fields.number("min_p", 0, 0, 1));
  sampling.top_k = static_cast<int32_t>(fields.integer("top_k", 0, INT32_MAX).value_or(0));
  sampling.repetition_penalty = as_float(fields.number("repetition_penalty", 1, 0.01, 100));
  sampling.presence_penalty = as_float(fields.number("presence_penalty", 0, -2, 2));
  sampling.frequency_penalty = as_float(fields.number("frequency_penalty", 0, -2, 2));
}

std::string is_no_token(int64_t vocabulary_size) {
  return "is not a token of the vocabulary, whose tokens are 0 to " +
         std::to_string(vocabulary_size - 1);
}

void parse_bias(const Json& bias, int64_t vocabulary_size, SamplingOptions& sampling) {
  if (bias.is_null()) return;
  if (!bias.is_object()) refuse("logit_bias", "an object is expected", "invalid_type");
  for (const auto& [name, value] : bias.items()) {
    const bool digits = !name.empty() && name.size() < 10 &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoll(name) >= vocabulary_size) {
      refuse("logit_bias", "'" + name + "' " + is_no_token(vocabulary_size));
    }
    if (!value.is_number() || std::abs(value.get<double>()) > 100) {
      refuse("logit_bias", "numbers from -100 to 100 are expected");
    }
    sampling.token_bias[static_cast<uint64_t>(std::stoll(name))] = value.get<float>();
  }
}

/// A prompt of completions: a text, tokens, or an array with one of these.
void parse_prompt(Json prompt, int64_t vocabulary_size, ApiRequest& request) {
  if (prompt.is_array() && prompt.size() == 1 && !prompt[0].is_number()) {
    const Json only = prompt[0];
    prompt = only;
  }
  if (prompt.is_string()) {
    request.prompt = prompt;
    return;
  }
  if (!prompt.is_array() || prompt.empty()) {
    refuse("prompt", "a string, tokens, or an array of one of these is expected", "invalid_type");
  }
  for (const Json& token : prompt) {
    if (!token.is_number_integer()) {
      refuse("prompt", "one prompt is supported, a string or tokens", "unsupported_value");
    }
    if (!token.is_number_unsigned() ||
        token.get<uint64_t>() >= static_cast<uint64_t>(vocabulary_size)) {
      refuse("prompt", token.dump() + " " + is_no_token(vocabulary_size));
    }
    request.prompt_tokens.push_back(token);
  }
}

/// The functions that the model may call, in the order of the request's members, which templates
/// write.
std::string parse_tools(Fields& fields, const std::string& body) {
  const Json tools = fields.take("tools"), choice = fields.take("tool_choice");
  if (!choice.is_null() && choice != "none" && choice != "auto") {
    refuse("tool_choice", "'none' or 'auto' is expected: no call can be forced",
           "unsupported_value");
  }
  if (tools.is_null() || tools == Json::array()) return "";
  if (!tools.is_array()) refuse("tools", "an array is expected", "invalid_type");
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const bool is_function = tool.is_object() && tool.value("type", Json()) == "function" &&
                             tool.value("function", Json()).is_object();
    if (!is_function) {
      refuse("tools[" + std::to_string(i) + "]",
             "an object of type 'function', with a 'function', is expected");
    }
  }
  return choice == "none" ? "" : nlohmann::ordered_json::parse(body)["tools"].dump();
}

void parse_chat(Fields& fields, const std::string& body, ApiRequest& request) {
  request.tools = parse_tools(fields, body);
  request.messages = parse_messages(fields.take("messages"), !request.tools.empty());
  request.format = parse_format(fields, body);
  if (const auto newer = fields.integer("max_completion_tokens", 1, INT32_MAX)) {
    request.max_tokens = newer;
  }
  const bool logprobs = fields.boolean("logprobs", false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !logprobs) refuse("top_logprobs", "it needs 'logprobs'");
  if (logprobs) request.n_logprobs = static_cast<int>(top.value_or(0));
  fields.expect_only("functions", Json::array());
  fields.expect_only("audio", nullptr);
  fields.expect_only("modalities", Json::array({"text"}));
  fields.take("parallel_tool_calls");
}

void parse_completion(Fields& fields, const std::string& body, int64_t vocabulary_size,
                      ApiRequest& request) {
  parse_prompt(fields.take("prompt"), vocabulary_size, request);
  request.format = parse_format(fields, body);
  request.echo = fields.boolean("echo", false);
  if (const auto n = fields.integer("logprobs", 0, 20)) request.n_logprobs = static_cast<int>(*n);
  if (request.echo && request.n_logprobs >= 0) {
    refuse("logprobs", "those of the prompt are not computed: it excludes 'echo'",
           "unsupported_value");
  }
  if (!request.max_tokens) request.max_tokens = 16;  // as the protocol has it
  fields.expect_only("suffix", "");
  fields.expect_only("best_of", 1);
}

}  // namespace

ApiRequest parse_request(const std::string& body, bool chat, const std::string& model,
                         int64_t vocabulary_size) {
  Json json = parse_json(body);
  if (!json.is_object()) refuse("", "the body must be a JSON object", "invalid_json");
  Fields fields(std::move(json));
  ApiRequest request;
  request.chat = chat;
  if (const Json given = fields.take("model"); !given.is_null() && given != model) {
    if (!given.is_string()) refuse("model", "a string is expected", "invalid_type");
    throw ApiError{404,
                   "the model '" + given.get<std::string>() + "' is not here; '" + model + "' is",
                   "model", "model_not_found"};
  }
  request.max_tokens = fields.integer("max_tokens", 1, INT32_MAX);
  if (chat) {
    parse_chat(fields, body, request);
  } else {
    parse_completion(fields, body, vocabulary_size, request);
  }
  request.stream = fields.boolean("stream", false);
  const Json stream_options = fields.take("stream_options");
  if (!stream_options.is_null()) {
    if (!request.stream || !stream_options.is_object()) {
      refuse("stream_options", "an object is expected, and 'stream' must be true");
    }
    const Json include_usage = stream_options.value("include_usage", Json(false));
    if (!include_usage.is_boolean()) {
      refuse("stream_options.include_usage", "true or false is expected", "invalid_type");
    }
    request.include_usage = include_usage;
  }
  parse_sampling(fields, request.sampling);
  parse_bias(fields.take("logit_bias"), vocabulary_size, request.sampling);
  if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) {
    request.sampling.seed = static_cast<uint64_t>(*seed);
    request.seed_given = true;
  }
  parse_stop(fields.take("stop"), request.stop);
  request.ignore_eos = fields.boolean("ignore_eos", false);
  request.n_choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  // What changes nothing here.
  for (const char* name : {"user", "metadata", "store", "service_tier", "safety_identifier",
                           "prompt_cache_key", "reasoning_effort", "verbosity"}) {
    fields.take(name);
  }
  for (const auto& [name, value] : fields.rest().items()) {
    if (!value.is_null()) refuse(name, "this argument is not known", "unknown_parameter");
  }
  return request;
}

}  // namespace executorch::extension::llm::server
