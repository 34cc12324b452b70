// What a runner is given, texts, conversations, images, sound and settings, and what it tells.
#include <executorch/extension/llm/runner/stats.h>
// Before anything else is included: it comes with the statistics.
[[maybe_unused]] static const auto rss = &executorch::extension::llm::get_rss_bytes;

#include <executorch/extension/llm/runner/chat_template.h>
#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/multimodal_input.h>
#include <executorch/extension/llm/runner/util.h>
#include <gtest/gtest.h>

using namespace executorch::extension::llm;
using executorch::aten::ScalarType;
using executorch::extension::make_tensor_ptr;
using executorch::runtime::Error;

TEST(Utf8, PrefixesOfWholeCharacters) {
  EXPECT_EQ(utf8_complete_prefix_len("ab\xe2\x82"), 2u);
  EXPECT_EQ(utf8_complete_prefix_len("ab\xe2\x82\xac"), 5u);
  EXPECT_EQ(utf8_complete_prefix_len("\xf0\x9f\x98"), 0u);
  EXPECT_EQ(utf8_complete_prefix_len(""), 0u);
  EXPECT_EQ(utf8_safe_prefix_len("a\xe2\x82\xac", 2), 1u);
  EXPECT_EQ(utf8_safe_prefix_len("a\xe2\x82\xac", 99), 4u);
}

TEST(Utf8, TextBeforeAStop) {
  bool hit = false;
  EXPECT_EQ(stop_safe_prefix_len("hello STOP now", {"STOP"}, hit), 6u);
  EXPECT_TRUE(hit);
  EXPECT_EQ(stop_safe_prefix_len("hello ST", {"STOP", "xx"}, hit), 6u);
  EXPECT_FALSE(hit);
  EXPECT_EQ(stop_safe_prefix_len("hello", {"", "STOP"}, hit), 5u);
  EXPECT_FALSE(hit);
  EXPECT_EQ(stop_safe_prefix_len("aab", {"ab", "b"}, hit), 1u);
  EXPECT_TRUE(hit);
  EXPECT_EQ(stop_safe_prefix_len("xaa", {"aab"}, hit), 1u);
}

TEST(ChatTemplate, WritesConversations) {
  const std::vector<ChatMessage> messages = {
      {"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};
  std::string cause;
  const auto rendered = [&](const char* name) {
    return ChatTemplate::of(name, cause)->render(messages, cause)->text;
  };
  EXPECT_EQ(rendered("chatml"),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(rendered("llama3"),
            "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(rendered("gemma"),
            "<start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello"
            "<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(rendered("phi"),
            "<|system|>\nBe kind.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nHello<|end|>\n"
            "<|user|>\nBye<|end|>\n<|assistant|>\n");
  EXPECT_EQ(rendered("llama2"),
            "[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]");
  EXPECT_EQ(rendered("mistral"), "[INST] Be kind.\n\nHi [/INST] Hello</s>[INST] Bye [/INST]");
  EXPECT_EQ(rendered("plain"), "Be kind.\n\nUser: Hi\nAssistant: Hello\nUser: Bye\nAssistant:");
  EXPECT_FALSE(ChatTemplate::of("other", cause).has_value());
  EXPECT_EQ(
      cause,
      "found 'other'; expected Jinja, or one of chatml llama2 llama3 gemma phi mistral plain");
}

TEST(ChatTemplate, SystemWithoutAQuestion) {
  std::string cause;
  const auto gemma = *ChatTemplate::of("gemma", cause);
  EXPECT_EQ(gemma.render({{"system", "a"}, {"system", "b"}}, cause)->text,
            "<start_of_turn>user\na\nb\n\n<end_of_turn>\n<start_of_turn>model\n");
}

TEST(ChatTemplate, ContinuesTheLastAnswer) {
  std::string cause;
  const auto chatml = *ChatTemplate::of("chatml", cause);
  EXPECT_EQ(chatml.render({{"user", "Hi"}, {"assistant", "Hel"}}, cause)->text,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHel");
  EXPECT_EQ(chatml.render({{"user", "Hi"}, {"assistant", ""}}, cause)->text,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  // Words that are also in what ends an answer.
  const auto continued = [&](const char* text, const char* answer) {
    return ChatTemplate::of(text, cause, {"<s>", "</s>"})
        ->render({{"user", "Hi"}, {"assistant", answer}}, cause)
        ->text;
  };
  EXPECT_EQ(continued("chatml", "end"),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nend");
  EXPECT_EQ(continued("llama2", "s"), "[INST] Hi [/INST] s");
  EXPECT_EQ(continued("chatml", " end \n"),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n end \n");
  EXPECT_EQ(continued("{{ messages[1].content | trim }}</s>", " s \n"), "s");
  EXPECT_EQ(chatml.render({{"user", "Hi"}, {"assistant", " \n"}}, cause)->text,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const auto silent = *ChatTemplate::of("{{ messages[0].content }}", cause);
  EXPECT_FALSE(silent.render({{"user", "Hi"}, {"assistant", "Hel"}}, cause).has_value());
}

TEST(ChatTemplate, WhatTheModelWritesBehindAnAnswer) {
  const auto stop = [](const char* text) {
    std::string cause;
    const auto stops = ChatTemplate::of(text, cause, {"<s>", "</s>"})->stop_strings();
    return stops.empty() ? "" : stops[0];
  };
  EXPECT_EQ(stop("chatml"), "<|im_end|>");
  EXPECT_EQ(stop("llama2"), "</s>");
  EXPECT_EQ(stop("llama3"), "<|eot_id|>");
  EXPECT_EQ(stop("gemma"), "<end_of_turn>");
  EXPECT_EQ(stop("phi"), "<|end|>");
  EXPECT_EQ(stop("mistral"), "</s>");
  EXPECT_EQ(stop("plain"), "\nUser:");
  EXPECT_EQ(stop("{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"), "</s>");
  EXPECT_EQ(stop("{% for m in messages %}{{ m.content }}{% endfor %}"), "");
  EXPECT_EQ(stop("{{ raise_exception('no') }}"), "");
}

TEST(ChatTemplate, TheBeginningIsATokenOfItsOwn) {
  std::string cause;
  const char* const jinja = "{{ bos_token }}{{ messages[0]['content'] }}";
  const auto prompt = ChatTemplate::of(jinja, cause, {"<s>", ""})->render({{"user", "x"}}, cause);
  EXPECT_TRUE(prompt->begins_with_bos);
  EXPECT_EQ(prompt->text, "x");
  const auto without = ChatTemplate::of(jinja, cause)->render({{"user", "x"}}, cause);
  EXPECT_FALSE(without->begins_with_bos);
  EXPECT_EQ(without->text, "x");
}

TEST(ChatTemplate, ErrorsSayWhatIsWrong) {
  std::string cause;
  EXPECT_FALSE(ChatTemplate::of("{% if %}", cause).has_value());
  EXPECT_EQ(cause, "line 1: found %}; expected an expression");
  const auto picky = *ChatTemplate::of("{{ raise_exception('no ' + messages[0].role) }}", cause);
  EXPECT_EQ(picky.name(), "Jinja");
  EXPECT_FALSE(picky.render({{"critic", "x"}}, cause).has_value());
  EXPECT_EQ(cause, "line 1: no critic");
}

TEST(MultimodalInput, KnowsWhatItIs) {
  const auto text = make_text_input("a");
  EXPECT_TRUE(text.is_text());
  EXPECT_STREQ(text.type_name(), "text");
  EXPECT_EQ(text.try_get_image(), nullptr);
  const auto tokens = make_token_input({1, 2});
  EXPECT_EQ(tokens.get_type(), MultimodalInput::Type::TOKENS);
  EXPECT_EQ(tokens.get_tokens().size(), 2u);
  EXPECT_EQ(MultimodalInput::TypeToString(MultimodalInput::Type::RAW_AUDIO), "raw_audio");
}

TEST(MultimodalInput, TensorsOfImagesAndSound) {
  const Image image(std::vector<float>(12), 2, 2, 3);
  const auto tensor = image.toTensor(true);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ((*tensor)->dim(), 4);
  EXPECT_EQ((*tensor)->size(1), 3);
  EXPECT_EQ(Image(std::vector<uint8_t>(11), 2, 2, 3).toTensor().error(), Error::InvalidArgument);
  EXPECT_EQ(Image(std::vector<uint8_t>(4), INT32_MAX, INT32_MAX, INT32_MAX).toTensor().error(),
            Error::InvalidArgument);
  const Audio audio(std::vector<uint8_t>(6), 1, 2, 3);
  EXPECT_EQ((*audio.toTensor())->scalar_type(), ScalarType::Byte);
  EXPECT_EQ(Audio().toTensor().error(), Error::InvalidArgument);
}

TEST(Bfloat16, CopiesFloats) {
  const auto converted = convert_to_bfloat16(make_tensor_ptr({2}, std::vector<float>{1, -2.5f}));
  ASSERT_TRUE(converted.ok());
  EXPECT_EQ((*converted)->scalar_type(), ScalarType::BFloat16);
  EXPECT_EQ(static_cast<float>((*converted)->const_data_ptr<executorch::aten::BFloat16>()[1]),
            -2.5f);
  EXPECT_EQ(convert_to_bfloat16(make_tensor_ptr({1}, std::vector<int32_t>{1})).error(),
            Error::InvalidArgument);
}

TEST(Positions, ErrorsSayWhatIsMissing) {
  int64_t start = 0;
  std::vector<int64_t> positions;
  EXPECT_EQ(populate_start_pos_or_cache_position(nullptr, start, positions, 3).error(),
            Error::InvalidArgument);
  EXPECT_EQ(get_llm_metadata(nullptr, nullptr).error(), Error::InvalidArgument);
  EXPECT_TRUE(get_eos_ids(nullptr, nullptr).empty());
}

TEST(GenerationConfig, RoomIsTheLeastOfAllBounds) {
  GenerationConfig config;
  EXPECT_EQ(config.resolve_max_new_tokens(100, 30), 70);
  config.seq_len = 50;
  EXPECT_EQ(config.resolve_max_new_tokens(100, 30), 20);
  config.max_new_tokens = 5;
  EXPECT_EQ(config.resolve_max_new_tokens(100, 30), 5);
  EXPECT_EQ(config.resolve_max_new_tokens(100, 60), 0);
  config = {};
  EXPECT_EQ(config.resolve_max_new_tokens(INT64_MAX, 0), INT32_MAX);
  EXPECT_EQ(config.resolve_max_new_tokens(-5, INT64_MAX), 0);
}

TEST(Stats, TheirTextHasTheTimesOfTheModel) {
  Stats stats;
  stats.model_execution_start_ms = 12;
  stats.model_execution_end_ms = 34;
  stats.aggregate_model_execution_time_ms = 56;
  const std::string text = stats_to_json_string(stats);
  EXPECT_NE(text.find("\"model_execution_start_ms\":12,\"model_execution_end_ms\":34,"),
            std::string::npos);
  EXPECT_NE(text.find(",\"aggregate_model_execution_time_ms\":56,"), std::string::npos);
}
