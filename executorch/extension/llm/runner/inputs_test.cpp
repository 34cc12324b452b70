// What a runner is given: texts, conversations, images and sound.
#include <executorch/extension/llm/runner/chat_template.h>
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
  const auto rendered = [&](const char* name) {
    return ChatTemplate::named(name)->render(messages);
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
  EXPECT_FALSE(ChatTemplate::named("other").has_value());
}

TEST(ChatTemplate, ContinuesTheLastAnswer) {
  const auto chatml = *ChatTemplate::named("chatml");
  EXPECT_EQ(chatml.render({{"user", "Hi"}, {"assistant", "Hel"}}),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHel");
}

TEST(ChatTemplate, IsRecognizedByItsMarks) {
  const auto name = [](const char* jinja) {
    const auto found = ChatTemplate::of(jinja);
    return found.has_value() ? found->name() : "";
  };
  EXPECT_EQ(name("{{'<|im_start|>' + message['role']}}"), "chatml");
  EXPECT_EQ(name("{{ '<|start_header_id|>' }}"), "llama3");
  EXPECT_EQ(name("{{ '<start_of_turn>' }}"), "gemma");
  EXPECT_EQ(name("{{ '<|assistant|>' }}{{ '<|end|>' }}"), "phi");
  EXPECT_EQ(name("[INST] <<SYS>>"), "llama2");
  EXPECT_EQ(name("[INST] {{ x }}"), "mistral");
  EXPECT_EQ(name("gemma"), "gemma");
  EXPECT_EQ(name("{{ messages }}"), "");
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
