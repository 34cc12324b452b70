#include <executorch/extension/llm/sampler/constraint/json_shape.h>
#include <executorch/extension/llm/server/request_fields.h>

#include <cmath>

namespace executorch::extension::llm::server {
namespace {

constexpr size_t kMaxStops = 16;
constexpr int64_t kMaxChoices = 128;
constexpr size_t kMaxAnswers = 2048;  // to all prompts

Json parse_json(const std::string& body) {
  if (constraint::json_shape(body, kMaxDepth).depth > kMaxDepth) {
    refuse("", "the body is nested too deeply", "invalid_json");
  }
  try {
    return Json::parse(body);
  } catch (const Json::exception& error) {
    refuse("", std::string("the body is not JSON: ") + error.what(), "invalid_json");
  }
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
    const auto ordered = OrderedJson::parse(body);
    const OrderedJson& asked = ordered.at("response_format").at("json_schema");
    return {"json_schema", asked.at("schema").dump()};
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

Prompt parse_prompt(const Json& prompt, int64_t vocabulary_size) {
  Prompt result;
  if (prompt.is_string()) {
    result.text = prompt;
    return result;
  }
  if (!prompt.is_array() || prompt.empty()) {
    refuse("prompt", "a string, tokens, or an array of these is expected", "invalid_type");
  }
  for (const Json& token : prompt) {
    if (!token.is_number_integer()) {
      refuse("prompt", "found tokens and something else; expected one kind", "invalid_type");
    }
    if (!token.is_number_unsigned() ||
        token.get<uint64_t>() >= static_cast<uint64_t>(vocabulary_size)) {
      refuse("prompt", token.dump() + " " + is_no_token(vocabulary_size));
    }
    result.tokens.push_back(token);
  }
  return result;
}

/// The prompts of a completion: one, or an array of several.
void parse_prompts(const Json& prompts, int64_t vocabulary_size, ApiRequest& request) {
  const bool is_one = !prompts.is_array() || prompts.empty() || prompts[0].is_number();
  if (is_one) {
    request.prompts = {parse_prompt(prompts, vocabulary_size)};
    return;
  }
  for (const Json& one : prompts) request.prompts.push_back(parse_prompt(one, vocabulary_size));
}

void parse_chat(Fields& fields, const std::string& body, ApiRequest& request) {
  request.format = parse_format(fields, body);
  parse_tools(fields, body, request);
  parse_messages(fields.take("messages"), request);
  const Json variables = fields.take("chat_template_kwargs");
  if (!variables.is_null()) {
    if (!variables.is_object()) {
      refuse("chat_template_kwargs", "an object is expected", "invalid_type");
    }
    request.template_variables = OrderedJson::parse(body).at("chat_template_kwargs").dump();
  }
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
  parse_prompts(fields.take("prompt"), vocabulary_size, request);
  request.format = parse_format(fields, body);
  request.echo = fields.boolean("echo", false);
  if (const auto n = fields.integer("logprobs", 0, 20)) request.n_logprobs = static_cast<int>(*n);
  if (!request.max_tokens) request.max_tokens = 16;  // as the protocol has it
  fields.expect_only("suffix", "");
}

void parse_best_of(Fields& fields, ApiRequest& request) {
  request.best_of = request.n_choices;
  if (request.chat) return;
  const auto best_of = fields.integer("best_of", request.n_choices, kMaxChoices);
  request.best_of = static_cast<int>(best_of.value_or(request.n_choices));
  if (request.prompts.size() * static_cast<size_t>(request.best_of) > kMaxAnswers) {
    refuse("prompt", "at most " + std::to_string(kMaxAnswers) +
                         " answers to all prompts together are supported");
  }
  if (request.stream && request.best_of > request.n_choices) {
    refuse("best_of", "the best of more than 'n' answers cannot be streamed", "unsupported_value");
  }
}

}  // namespace

void refuse(const std::string& param, const std::string& what, const std::string& code) {
  throw ApiError{400, param.empty() ? what : "'" + param + "': " + what, param, code};
}

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
  // A completion of no tokens tells how likely those of its prompt are.
  request.max_tokens = fields.integer("max_tokens", chat ? 1 : 0, INT32_MAX);
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
  parse_best_of(fields, request);
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
