#include <executorch/extension/llm/server/api.h>
#include <executorch/extension/llm/server/logprobs.h>
#include <executorch/extension/llm/server/scripted_model.h>

#include <executorch/runtime/platform/runtime.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace executorch::extension::llm::server;
using executorch::extension::make_tensor_ptr;
using executorch::runtime::Error;

namespace {

ApiRequest chat(const std::string& more) {
  const std::string messages = R"("messages":[{"role":"user","content":"hi"}])";
  return parse_request("{" + messages + (more.empty() ? "" : "," + more) + "}", true, "m", 257);
}

ApiError refused(const std::string& body, bool is_chat = true) {
  try {
    parse_request(body, is_chat, "m", 257);
  } catch (const ApiError& error) {
    return error;
  }
  ADD_FAILURE() << body << " is accepted";
  return {};
}

std::string with_message(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + more + "}";
}

}  // namespace

TEST(ApiRequest, ReadsAllThatChatsMaySay) {
  const ApiRequest request = parse_request(
      R"({"model":"m","messages":[{"role":"developer","content":"s"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
          {"role":"assistant","content":"c"}],
          "stream":true,"stream_options":{"include_usage":true},"stop":["x","y"],"temperature":0,
          "top_p":0.5,"seed":-7,"max_completion_tokens":9,"max_tokens":5,"logprobs":true,
          "top_logprobs":3,"logit_bias":{"65":-100},"presence_penalty":1,"frequency_penalty":-1,
          "n":1,"user":"u","tools":null,"response_format":{"type":"json_schema","json_schema":
          {"name":"n","schema":{"type":"object","properties":{"z":{},"a":{}}}}}})",
      true, "m", 257);
  ASSERT_EQ(request.messages.size(), 3u);
  EXPECT_EQ(request.messages[0].role, "system");
  EXPECT_EQ(request.messages[1].content, "ab");
  EXPECT_TRUE(request.stream && request.include_usage && request.seed_given);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_EQ(request.sampling.seed, static_cast<uint64_t>(-7));
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.n_logprobs, 3);
  EXPECT_EQ(request.sampling.token_bias.at(65), -100);
  // The order of properties is that of the request.
  EXPECT_EQ(request.format.text, R"({"type":"object","properties":{"z":{},"a":{}}})");
}

TEST(ApiRequest, TakesAnswersBackAsClientsKeepThem) {
  const ApiRequest request = parse_request(
      R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a",
          "refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[]},
          {"role":"user","content":"v"}]})",
      true, "m", 9);
  ASSERT_EQ(request.messages.size(), 3u);
  EXPECT_EQ(request.messages[1].content, "a");
}

TEST(ApiRequest, TakesCallsOfFunctionsBackAndTheirResults) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"add"}}])";
  const std::string call = R"({"id":"abc123XYZ","type":"function",)"
                           R"("function":{"name":"add","arguments":"{\"z\":1,\"a\":2}"}})";
  const auto with = [&](const std::string& calls, const std::string& more) {
    return R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":null,
        "tool_calls":)" +
           calls + R"(},{"role":"tool","tool_call_id":"abc123XYZ","content":"3"}])" + more + "}";
  };
  const ApiRequest request = parse_request(with("[" + call + "]", "," + tools), true, "m", 9);
  ASSERT_EQ(request.messages.size(), 3u);
  EXPECT_EQ(request.messages[1].content, "");
  // The arguments are no text any more, and in the order in which they were.
  EXPECT_EQ(request.messages[1].more, R"({"tool_calls":[{"id":"abc123XYZ","type":"function",)"
                                      R"("function":{"name":"add","arguments":{"z":1,"a":2}}}]})");
  EXPECT_EQ(request.messages[2].more, R"({"tool_call_id":"abc123XYZ"})");
  EXPECT_TRUE(request.has_calls);
  // Clients often leave out the tools once they have been called.
  EXPECT_EQ(parse_request(with("[" + call + "]", ""), true, "m", 9).messages[1].more,
            request.messages[1].more);

  const std::string deep = std::string(300000, '[');
  struct Row {
    std::string calls, param;
  };
  const std::string place = "messages[1].tool_calls";
  for (const Row& row : std::vector<Row>{
           {"{}", place},
           {"[{}]", place + "[0]"},
           {"[3]", place + "[0]"},
           {R"([{"function":{}}])", place + "[0].function.name"},
           {R"([{"function":{"name":3}}])", place + "[0].function.name"},
           {R"([{"id":3,"function":{"name":"f"}}])", place + "[0].id"},
           {R"([{"function":{"name":"f","arguments":{}}}])", place + "[0].function.arguments"},
           {R"([{"function":{"name":"f","arguments":"{"}}])", place + "[0].function.arguments"},
           {R"([{"function":{"name":"f","arguments":"3"}}])", place + "[0].function.arguments"},
           {R"([{"function":{"name":"f","arguments":")" + deep + R"("}}])",
            place + "[0].function.arguments"}}) {
    EXPECT_EQ(refused(with(row.calls, "," + tools)).param, row.param) << row.calls.substr(0, 80);
  }
}

TEST(ApiRequest, TakesWhatTemplatesMayRead) {
  const ApiRequest request = parse_request(
      R"({"messages":[{"role":"assistant","content":"a","reasoning_content":"r"}],
          "chat_template_kwargs":{"z":1,"enable_thinking":false}})",
      true, "m", 9);
  EXPECT_EQ(request.messages[0].more, R"({"reasoning_content":"r"})");
  EXPECT_FALSE(request.has_calls);
  EXPECT_EQ(request.template_variables, R"({"z":1,"enable_thinking":false})");
}

TEST(ApiRequest, MakesAForcedCallTheFormatOfTheAnswer) {
  const std::string functions =
      R"("tools":[{"type":"function","function":{"name":"now"}},{"type":"function","function":{
         "name":"add","parameters":{"$defs":{"N":{"type":"number"}},"properties":{
           "z":{"$ref":"#/$defs/N"},"enum":{"$ref":"#"},"a":{"const":{"$ref":"#"}}}}}}])";
  const auto call = [](const std::string& name, const std::string& arguments) {
    return R"({"type":"object","required":["name","arguments"],"additionalProperties":false,)"
           R"("properties":{"name":{"const":")" +
           name + R"("},"arguments":)" + arguments + "}}";
  };
  const auto add_at = [&](const std::string& i) {
    const std::string place = R"({"$ref":"#/anyOf/)" + i + "/properties/arguments";
    return call("add", R"({"$defs":{"N":{"type":"number"}},"properties":{"z":)" + place +
                           R"(/$defs/N"},"enum":)" + place +
                           R"("},"a":{"const":{"$ref":"#"}}},"type":"object"})");
  };
  const std::string now = call("now", R"({"type":"object"})");
  const ApiRequest any = chat(functions + R"(,"tool_choice":"required",
      "response_format":{"type":"json_object"})");  // an answer that calls has no content
  EXPECT_EQ(any.format.type, "json_schema");
  EXPECT_EQ(any.format.text, R"({"anyOf":[)" + now + "," + add_at("1") + "]}");
  EXPECT_EQ(any.format.param, "tools");
  const std::string only_add = R"(,"tool_choice":{"type":"function","function":{"name":"add"}})";
  EXPECT_EQ(chat(functions + only_add).format.text, R"({"anyOf":[)" + add_at("0") + "]}");
  EXPECT_EQ(chat(functions + R"(,"tool_choice":"auto")").format.type, "");
  EXPECT_EQ(chat(functions + R"(,"tool_choice":"none")").tools, "");
  EXPECT_EQ(refused(with_message(R"("tools":[],)" + only_add.substr(1))).param, "tool_choice");

  const auto refused_for = [&](const std::string& function, const std::string& choice) {
    return refused(with_message(R"("tools":[{"type":"function","function":)" + function +
                                R"(}],"tool_choice":)" + choice))
        .param;
  };
  const std::string place = "tools[0].function";
  EXPECT_EQ(refused_for("{}", R"("required")"), place + ".name");
  EXPECT_EQ(refused_for(R"({"name":"f","parameters":3})", R"("required")"), place + ".parameters");
  EXPECT_EQ(refused_for(R"({"name":"f","parameters":{"type":"array"}})", R"("required")"),
            place + ".parameters.type");
  for (const char* choice :
       {R"({"type":"function","function":{"name":"g"}})", R"({"type":"function","function":{}})",
        R"({"type":"function","function":{"name":3}})", R"({"type":"function"})",
        R"({"type":"custom"})", "3", R"("any")"}) {
    EXPECT_EQ(refused_for(R"({"name":"f"})", choice), "tool_choice") << choice;
  }
}

TEST(ApiRequest, OfManyPartsIsReadInTimeInProportion) {
  // Each would take minutes if the parser looked at every part at all parts before it.
  std::string empty = "{}", members = "\"0\":{}";
  for (int i = 1; i < 100000; ++i) {
    empty += ",{}";
    members += ",\"" + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(refused("{\"messages\":[" + empty + "]}").param, "messages[0].role");
  const ApiRequest request =
      chat(R"("tools":[{"type":"function","function":{"parameters":{)" + members + "}}}]");
  EXPECT_GT(request.tools.size(), members.size());
  const ApiRequest forced =
      chat(R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"f",)"
           R"("parameters":{)" +
           members + "}}}]");
  EXPECT_GT(forced.format.text.size(), members.size());
}

TEST(ApiRequest, ReadsPromptsOfEachKind) {
  const auto prompts = [](const std::string& json) {
    return parse_request(R"({"prompt":)" + json + "}", false, "m", 9).prompts;
  };
  EXPECT_EQ(prompts(R"("p")").at(0).text, "p");
  EXPECT_EQ(prompts(R"(["p"])").at(0).text, "p");
  const std::vector<uint64_t> tokens{1, 8};
  EXPECT_EQ(prompts("[1,8]").at(0).tokens, tokens);
  EXPECT_EQ(prompts("[[1,8]]").at(0).tokens, tokens);
  const std::vector<Prompt> several = prompts(R"(["p",[1,8],"q"])");
  ASSERT_EQ(several.size(), 3u);
  EXPECT_EQ(several[1].tokens, tokens);
  EXPECT_EQ(several[2].text, "q");
  EXPECT_EQ(parse_request(R"({"prompt":"p"})", false, "m", 9).max_tokens, 16);
  EXPECT_EQ(parse_request(R"({"prompt":"p","max_tokens":0})", false, "m", 9).max_tokens, 0);
  const ApiRequest best = parse_request(R"({"prompt":"p","n":2,"best_of":5})", false, "m", 9);
  EXPECT_EQ(best.n_choices, 2);
  EXPECT_EQ(best.best_of, 5);
}

TEST(ApiRequest, ReadsFormatsOfCompletions) {
  const ApiRequest request = parse_request(
      R"({"prompt":"p","response_format":{"type":"json_schema","json_schema":
          {"name":"n","schema":{"type":"object","properties":{"z":{},"a":{}}}}}})",
      false, "m", 9);
  EXPECT_EQ(request.format.type, "json_schema");
  EXPECT_EQ(request.format.text, R"({"type":"object","properties":{"z":{},"a":{}}})");
}

TEST(ApiRequest, NamesThePartThatIsWrong) {
  struct Row {
    std::string body, param;
  };
  for (const Row& row : std::vector<Row>{
           {"", ""},
           {"{", ""},
           {"[]", ""},
           {std::string(1000, '['), ""},
           {"{}", "messages"},
           {R"({"messages":[]})", "messages"},
           {R"({"messages":[3]})", "messages[0]"},
           {R"({"messages":[{"role":"critic","content":"x"}]})", "messages[0].role"},
           {with_message(R"("chat_template_kwargs":[])"), "chat_template_kwargs"},
           {with_message(R"("best_of":2)"), "best_of"},
           {R"({"messages":[{"role":"user"}]})", "messages[0].content"},
           {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
            "messages[0].content[0]"},
           {with_message(R"("temperature":2.5)"), "temperature"},
           {with_message(R"("temperature":"hot")"), "temperature"},
           {with_message(R"("top_p":-0.1)"), "top_p"},
           {with_message(R"("max_tokens":0)"), "max_tokens"},
           {with_message(R"("max_tokens":1.5)"), "max_tokens"},
           {with_message(R"("max_tokens":9223372036854775808)"), "max_tokens"},
           {with_message(R"("n":0)"), "n"},
           {with_message(R"("n":129)"), "n"},
           {with_message(R"("stop":"")"), "stop"},
           {with_message(R"("stop":[1])"), "stop"},
           {with_message(R"("tools":{})"), "tools"},
           {with_message(R"("tools":[{}])"), "tools[0]"},
           {with_message(R"("tool_choice":"required")"), "tool_choice"},
           {with_message(R"("top_logprobs":3)"), "top_logprobs"},
           {with_message(R"("logit_bias":{"300":1})"), "logit_bias"},
           {with_message(R"("logit_bias":{"99999999999999999999":1})"), "logit_bias"},
           {with_message(R"("response_format":{"type":"xml"})"), "response_format.type"},
           {with_message(R"("response_format":{"type":"json_schema"})"),
            "response_format.json_schema"},
           {with_message(R"("stream_options":{})"), "stream_options"},
           {with_message(R"("stream":true,"stream_options":[])"), "stream_options"},
           {with_message(R"("stream":true,"stream_options":{"include_usage":"yes"})"),
            "stream_options.include_usage"},
           {with_message(R"("tempratur":1)"), "tempratur"}}) {
    const ApiError error = refused(row.body);
    EXPECT_EQ(error.status, 400) << row.body;
    EXPECT_EQ(error.param, row.param) << row.body << ": " << error.message;
  }
  EXPECT_EQ(refused(with_message(R"("model":"gpt")")).status, 404);
  EXPECT_EQ(refused(R"({"prompt":[1,"b"]})", false).param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":["a",{}]})", false).param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":["a",[]]})", false).param, "prompt");
  std::string many = R"("a")";
  for (int i = 1; i < 1025; ++i) many += R"(,"a")";
  EXPECT_EQ(parse_request(R"({"prompt":[)" + many + "]}", false, "m", 9).prompts.size(), 1025u);
  EXPECT_EQ(refused(R"({"n":2,"prompt":[)" + many + "]}", false).param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":"a","max_tokens":-1})", false).param, "max_tokens");
  EXPECT_EQ(refused(R"({"prompt":"a","n":3,"best_of":2})", false).param, "best_of");
  EXPECT_EQ(refused(R"({"prompt":"a","best_of":2,"stream":true})", false).param, "best_of");
  EXPECT_EQ(refused(R"({"prompt":[257]})", false).param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":[]})", false).param, "prompt");
  EXPECT_EQ(refused(R"({"prompt":[1,-1]})", false).message,
            "'prompt': -1 is not a token of the vocabulary, whose tokens are 0 to 256");
  EXPECT_EQ(refused(with_message(R"("logit_bias":{"257":1})")).message,
            "'logit_bias': '257' is not a token of the vocabulary, whose tokens are 0 to 256");
}

TEST(ApiAnswer, IsJsonWhateverTheTextIs) {
  const ScriptedModel model({[](const std::string&) { return ""; }});
  const ApiRequest request = chat(R"("logprobs":true)");
  ApiAnswer answer(request, model, "1", "m", 5);
  answer.add("a\xff\"\n", "stop", {{'a', -0.5f, {}}});
  const Json json = Json::parse(answer.whole({3, 1, 2}));
  EXPECT_EQ(json["choices"][0]["message"]["content"], "a\xef\xbf\xbd\"\n");
  EXPECT_EQ(json["choices"][0]["logprobs"]["content"][0]["bytes"], Json::array({'a'}));
  EXPECT_EQ(json["usage"]["total_tokens"], 5);
  EXPECT_EQ(json["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
  const Json error = Json::parse(error_body({401, "no", "", "code"}))["error"];
  EXPECT_EQ(error["type"], "authentication_error");
  EXPECT_TRUE(error["param"].is_null());
}

TEST(ApiAnswer, HasCallsOfFunctions) {
  const ScriptedModel model({[](const std::string&) { return ""; }});
  const ApiRequest request = chat("");
  ApiAnswer answer(request, model, "1", "m", 5);
  const std::vector<ToolCall> calls = {{"abc123XYZ", "add", R"({"z":1})"}, {"def", "now", "{}"}};
  answer.add("", "tool_calls", {}, calls);
  answer.begin_choice(1);
  answer.add("See.", "tool_calls", {}, {calls[1]});
  const Json json = Json::parse(answer.whole({3, 1, 2}));
  const Json message = json["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"][0], Json::parse(R"({"id":"abc123XYZ","type":"function",
      "function":{"name":"add","arguments":"{\"z\":1}"}})"));
  EXPECT_EQ(message["tool_calls"].size(), 2u);
  EXPECT_EQ(json["choices"][1]["message"]["content"], "See.");
  const Json part = Json::parse(answer.calls_part(calls, 3))["choices"][0]["delta"]["tool_calls"];
  EXPECT_EQ(part[1]["index"], 4);
  EXPECT_EQ(part[1]["function"]["name"], "now");
}

TEST(ApiAnswer, PlacesOfTokensAreCharactersOfTheWholeText) {
  const ScriptedModel model({[](const std::string&) { return ""; }});
  const ApiRequest request = parse_request(R"({"prompt":"p","logprobs":3})", false, "m", 257);
  ApiAnswer answer(request, model, "1", "m", 5);
  const auto places = [&answer](const std::string& tokens) {
    std::vector<TokenLogprob> told;
    for (const char c : tokens) told.push_back({static_cast<uint8_t>(c), -1, {}});
    const Json json = Json::parse(answer.part("", told));
    return json["choices"][0]["logprobs"]["text_offset"].get<std::vector<int>>();
  };
  using Places = std::vector<int>;
  // An e with its accent, which is two bytes, then three of four bytes of another character.
  EXPECT_EQ(places("a\xc3\xa9z\xf0\x9f\x91"), (Places{0, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(places("\xa9y"), (Places{3, 4}));
  // Bytes that are no character are one each, and one that ends before its time is one.
  EXPECT_EQ(places("\x80\x80\xe0\xa0x"), (Places{5, 6, 7, 7, 8}));
  EXPECT_EQ(places(""), Places());
  EXPECT_EQ(places("x"), Places{9});
}

TEST(ApiAnswer, TellsNothingOfTheFirstTokenOfAText) {
  const ScriptedModel model({[](const std::string&) { return ""; }});
  const ApiRequest request = parse_request(R"({"prompt":"p","logprobs":1})", false, "m", 257);
  ApiAnswer answer(request, model, "1", "m", 5);
  const Json told =
      Json::parse(answer.part("ab", {{'a', std::numeric_limits<float>::quiet_NaN(), {}},
                                     {'b', -0.5f, {{'b', -0.5f}}}}))["choices"][0]["logprobs"];
  EXPECT_EQ(told["tokens"], (Json{"a", "b"}));
  EXPECT_EQ(told["token_logprobs"], (Json{nullptr, -0.5}));
  EXPECT_EQ(told["top_logprobs"], (Json{nullptr, {{"b", -0.5}}}));
}

TEST(ApiAnswer, TellsOneOfTheLikeliestThatLookAlike) {
  const ScriptedModel model({[](const std::string&) { return ""; }});
  const ApiRequest request = parse_request(R"({"prompt":"p","logprobs":3})", false, "m", 257);
  ApiAnswer answer(request, model, "1", "m", 5);
  const std::string text =
      answer.part("", {{'a', -0.5f, {{'a', -0.5f}, {0x80, -1.0f}, {0x81, -2.0f}, {0xff, -3.0f}}}});
  EXPECT_EQ(text.find("\xef\xbf\xbd"), text.rfind("\xef\xbf\xbd")) << text;
  const Json likeliest = Json::parse(text)["choices"][0]["logprobs"]["top_logprobs"][0];
  EXPECT_EQ(likeliest, (Json{{"a", -0.5}, {"\xef\xbf\xbd", -1.0}}));
}

TEST(LogprobRecorder, TellsProbabilities) {
  executorch::runtime::runtime_init();
  LogprobRecorder recorder(2);
  const float never = -INFINITY;
  auto logits = make_tensor_ptr({1, 4}, std::vector<float>{1, 3, never, 3});
  ASSERT_EQ(recorder.process(*logits), Error::Ok);
  ASSERT_EQ(recorder.accept(0), Error::Ok);
  ASSERT_EQ(recorder.process(*logits), Error::Ok);
  ASSERT_EQ(recorder.accept(2), Error::Ok);
  EXPECT_EQ(recorder.accept(4), Error::InvalidArgument);
  const auto taken = recorder.take();
  ASSERT_EQ(taken.size(), 2u);
  const float sum = std::log(std::exp(1.0f) + 2 * std::exp(3.0f));
  EXPECT_NEAR(taken[0].logprob, 1 - sum, 1e-5);
  EXPECT_EQ(taken[1].logprob, -9999.0f);
  ASSERT_EQ(taken[0].likeliest.size(), 2u);
  EXPECT_EQ(taken[0].likeliest[0].first, 1u);
  EXPECT_EQ(taken[0].likeliest[1].first, 3u);
  EXPECT_TRUE(recorder.take().empty());
}

TEST(Logprobs, NaNHasNoProbabilityAndInfinityHasAll) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  LogprobRecorder recorder(4);
  const auto record = [&](std::vector<float> logits, uint64_t token) {
    EXPECT_EQ(recorder.process(*make_tensor_ptr(std::move(logits))), Error::Ok);
    EXPECT_EQ(recorder.accept(token), Error::Ok);
    return recorder.take().at(0);
  };
  const TokenLogprob half = record({kNaN, 1, 1, kNaN}, 2);
  EXPECT_NEAR(half.logprob, std::log(0.5f), 1e-6f);
  EXPECT_EQ(half.likeliest.at(0).first, 1u);
  EXPECT_EQ(half.likeliest.at(1).first, 2u);
  EXPECT_EQ(half.likeliest.at(3).second, -9999.0f);
  EXPECT_NEAR(record({kInfinity, 1, kInfinity, kNaN}, 0).logprob, std::log(0.5f), 1e-6f);
  EXPECT_EQ(record({kInfinity, 1, 2, 3}, 0).logprob, 0.0f);
  EXPECT_EQ(record({kInfinity, 1, 2, 3}, 3).logprob, -9999.0f);
}
