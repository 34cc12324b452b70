// Programs that read images and sound. What needs a real one is run by tests/llm/multimodal_test.py,
// which exports it and names it in ET_TEST_PROGRAM.
#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/encoder_input.h>
#include <executorch/extension/llm/runner/image_prefiller.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

using namespace executorch::extension::llm;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::Module;
using executorch::runtime::Error;

namespace {

using Inputs = std::vector<MultimodalInput>;
using Tokens = std::vector<uint64_t>;

/// Letters are tokens from 0 on; 49 begins and ends a text, unless there are fewer tokens.
class Letters final : public tokenizers::Tokenizer {
 public:
  explicit Letters(int32_t n_tokens = 50) {
    initialized_ = true;
    vocab_size_ = n_tokens;
    bos_tok_ = eos_tok_ = n_tokens == 50 ? 49 : 0;
  }
  tokenizers::Error load(const std::string&) override { return tokenizers::Error::Ok; }
  tokenizers::Result<std::string> id_to_piece(uint64_t token) const override {
    if (token >= static_cast<uint64_t>(vocab_size_)) return tokenizers::Error::OutOfRange;
    return std::string(1, static_cast<char>('A' + token));
  }
  tokenizers::Result<uint64_t> piece_to_id(const std::string&) const override {
    return tokenizers::Error::OutOfRange;
  }
  tokenizers::Result<Tokens> encode(const std::string& input, int8_t bos,
                                    int8_t eos) const override {
    Tokens tokens(static_cast<size_t>(bos), 49);
    for (const char c : input) tokens.push_back(static_cast<uint64_t>(c - 'A'));
    tokens.insert(tokens.end(), static_cast<size_t>(eos), 49);
    return tokens;
  }
  tokenizers::Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
};

EncoderInput encoder(ScalarType type, std::vector<executorch::aten::SizesType> sizes,
                     bool is_dynamic = false) {
  EncoderInput input;
  input.method = "encoder";
  input.type = type;
  input.sizes = std::move(sizes);
  input.is_dynamic = is_dynamic;
  return input;
}

MultimodalInput bytes_image(int width = 2, int height = 2) {
  std::vector<uint8_t> values(static_cast<size_t>(3 * width * height));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(250 + i);
  return make_image_input(Image(std::move(values), width, height, 3));
}

MultimodalInput raw_audio(std::vector<uint8_t> data, int32_t channels, int32_t samples) {
  return make_raw_audio_input(RawAudio{std::move(data), 1, channels, samples});
}

class EncoderInputs : public testing::Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }
};

TEST_F(EncoderInputs, HaveTheTypeAndTheRankOfTheEncoder) {
  const auto bytes = fit_encoder_input(encoder(ScalarType::Byte, {3, 2, 2}), bytes_image());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)->scalar_type(), ScalarType::Byte);
  EXPECT_EQ((*bytes)->dim(), 3);
  const auto floats = fit_encoder_input(encoder(ScalarType::Float, {1, 3, 2, 2}), bytes_image());
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ((*floats)->dim(), 4);
  EXPECT_EQ((*floats)->const_data_ptr<float>()[5], 255.0f);
  EXPECT_EQ((*floats)->const_data_ptr<float>()[6], 0.0f);
  const auto half =
      fit_encoder_input(encoder(ScalarType::BFloat16, {1, 1, 2}),
                        make_audio_input(Audio(std::vector<float>{1.5f, -2.0f}, 1, 1, 2)));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(static_cast<float>((*half)->const_data_ptr<executorch::aten::BFloat16>()[1]), -2.0f);
  const auto dynamic = fit_encoder_input(encoder(ScalarType::Byte, {3, 9, 9}, true), bytes_image());
  ASSERT_TRUE(dynamic.ok());
  EXPECT_EQ((*dynamic)->size(2), 2);
}

TEST_F(EncoderInputs, RawSoundIsElementsOrBytes) {
  const float values[2] = {0.5f, -1.0f};
  std::vector<uint8_t> data(sizeof(values));
  std::memcpy(data.data(), values, sizeof(values));
  const auto floats = fit_encoder_input(encoder(ScalarType::Float, {1, 2}), raw_audio(data, 1, 2));
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ((*floats)->const_data_ptr<float>()[1], -1.0f);
  const auto bytes = fit_encoder_input(encoder(ScalarType::Float, {2}), raw_audio({7, 200}, 1, 2));
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)->const_data_ptr<float>()[1], 200.0f);
}

TEST_F(EncoderInputs, WhatDoesNotFitIsAnError) {
  const auto error = [](const EncoderInput& input, const MultimodalInput& media) {
    return fit_encoder_input(input, media).error();
  };
  const auto takes_bytes = encoder(ScalarType::Byte, {3, 2, 2});
  EXPECT_EQ(error(takes_bytes, bytes_image(3, 2)), Error::InvalidArgument);
  EXPECT_EQ(error(encoder(ScalarType::Byte, {3, 2, 2}, true), bytes_image(3, 2)),
            Error::InvalidArgument);
  EXPECT_EQ(error(encoder(ScalarType::Byte, {2, 2}), bytes_image()), Error::InvalidArgument);
  const auto floats = make_image_input(Image(std::vector<float>(12), 2, 2, 3));
  EXPECT_EQ(error(takes_bytes, floats), Error::InvalidArgument);
  EXPECT_EQ(error(encoder(ScalarType::Long, {3, 2, 2}), floats), Error::InvalidArgument);
  EXPECT_EQ(error(takes_bytes, make_text_input("a")), Error::InvalidArgument);
  EXPECT_EQ(error(takes_bytes, make_image_input(Image())), Error::InvalidArgument);
  const auto takes_sound = encoder(ScalarType::Float, {1, 8}, true);
  EXPECT_EQ(error(takes_sound, raw_audio({1, 2, 3}, 1, 2)), Error::InvalidArgument);
  EXPECT_EQ(error(takes_sound, raw_audio({}, 0, 0)), Error::InvalidArgument);
  EXPECT_EQ(error(takes_sound, raw_audio({1}, -1, -1)), Error::InvalidArgument);
  EXPECT_EQ(error(takes_sound, raw_audio({1}, INT32_MAX, INT32_MAX)), Error::InvalidArgument);
  EXPECT_EQ(error(takes_sound, raw_audio(std::vector<uint8_t>(36), 1, 9)), Error::InvalidArgument);
}

/// Sets all logits but one to minus infinity.
class Only final : public LogitProcessor {
 public:
  explicit Only(uint64_t token) : token_(token) {}
  Error process(Tensor logits) override {
    const auto n = static_cast<size_t>(logits.size(logits.dim() - 1));
    float* const last =
        logits.mutable_data_ptr<float>() + (static_cast<size_t>(logits.numel()) - n);
    for (size_t i = 0; i < n; ++i) {
      if (i != token_) last[i] = -std::numeric_limits<float>::infinity();
    }
    return Error::Ok;
  }

 private:
  uint64_t token_;
};

/// A program of uint8 images [3, 8, 8] and sound [1, 8, frames <= 16], which takes 5 tokens in a
/// call, in a context of 48.
class Program : public testing::Test {
 protected:
  void SetUp() override {
    executorch::runtime::runtime_init();
    const char* const path = std::getenv("ET_TEST_PROGRAM");
    if (path == nullptr) GTEST_SKIP() << "tests/llm/multimodal_test.py runs this";
    path_ = path;
    runner = create_multimodal_runner(path_, std::make_unique<Letters>());
    ASSERT_NE(runner, nullptr);
    std::vector<uint8_t> pixels(192);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
    image = make_image_input(Image(std::move(pixels), 8, 8, 3));
    std::vector<float> sound(8 * 12);
    for (size_t i = 0; i < sound.size(); ++i) sound[i] = static_cast<float>(i % 5) - 2;
    audio = make_audio_input(Audio(std::move(sound), 1, 8, 12));
  }

  static GenerationConfig greedy(int32_t n) {
    GenerationConfig config;
    config.max_new_tokens = n;
    config.temperature = 0;
    config.ignore_eos = true;
    config.echo = false;
    return config;
  }

  Tokens generated(const Inputs& inputs, int32_t n) {
    EXPECT_EQ(runner->generate(inputs, greedy(n)), Error::Ok);
    return runner->text_token_generator().chosen_tokens();
  }

  std::string path_;
  std::unique_ptr<MultimodalRunner> runner;
  MultimodalInput image = make_text_input("");
  MultimodalInput audio = make_text_input("");
};

TEST_F(Program, ReadsInOneCallWhatItReadsInMany) {
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Tokens expected = generated({make_token_input(text), image}, 8);
  runner->reset();
  for (const uint64_t token : text) {
    ASSERT_TRUE(runner->prefill({make_token_input({token})}).ok());
  }
  const auto next = runner->prefill({image});
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*next, expected[0]);
  EXPECT_EQ(generated({}, 8), expected);
}

TEST_F(Program, GoesOnWhereItEnded) {
  const Inputs prompt = {make_text_input("ABC"), image, make_text_input("DE"), audio};
  const Tokens expected = generated(prompt, 10);
  runner->reset();
  Tokens found = generated(prompt, 4);
  const Tokens rest = generated({}, 6);
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_EQ(found, expected);
  // A second prompt follows the whole answer.
  const Tokens second = generated({image}, 3);
  runner->reset();
  EXPECT_EQ(generated({make_text_input("ABC"), image, make_text_input("DE"), audio,
                       make_token_input(expected), image},
                      3),
            second);
}

TEST_F(Program, TheFirstTokenBelongsToTheBeginning) {
  const auto after = [&](const Inputs& inputs, int32_t n_bos) {
    runner->reset();
    EXPECT_TRUE(runner->prefill(inputs, n_bos).ok());
    return generated({make_text_input("B")}, 6);
  };
  const Tokens expected = after({make_token_input({49, 0}), image}, 0);
  EXPECT_EQ(after({make_text_input("A"), image}, 1), expected);
  EXPECT_EQ(after({image, make_text_input("A")}, 1),
            after({make_token_input({49}), image, make_token_input({0})}, 0));
  EXPECT_NE(after({make_text_input("A"), image}, 0), expected);
  // Not to what follows.
  runner->reset();
  ASSERT_TRUE(runner->prefill("A").ok());
  const auto with = runner->prefill("B", 1);
  runner->reset();
  const auto without = runner->prefill("AB");
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(*with, *without);
}

TEST_F(Program, ErrorsChangeNothing) {
  const Inputs prompt = {make_text_input("ABC"), image};
  const Tokens expected = generated(prompt, 5);
  runner->reset();
  ASSERT_TRUE(runner->prefill(prompt).ok());
  const auto error = [&](const Inputs& inputs) { return runner->prefill(inputs).error(); };
  EXPECT_EQ(error({}), Error::InvalidArgument);
  EXPECT_EQ(error({make_text_input("")}), Error::InvalidArgument);
  EXPECT_EQ(error({make_token_input(Tokens())}), Error::InvalidArgument);
  EXPECT_EQ(error({make_text_input("AB"), bytes_image()}), Error::InvalidArgument);
  EXPECT_EQ(error({make_image_input(Image(std::vector<float>(192), 8, 8, 3))}),
            Error::InvalidArgument);
  EXPECT_NE(error({make_token_input({1000000})}), Error::Ok);
  EXPECT_NE(error({make_token_input({UINT64_MAX})}), Error::Ok);
  EXPECT_EQ(error({make_token_input(Tokens(42, 1))}), Error::InvalidArgument);
  EXPECT_EQ(error(Inputs(11, image)), Error::InvalidArgument);
  EXPECT_EQ(generated({}, 5), expected);
}

TEST_F(Program, EndsWhereTheContextEnds) {
  EXPECT_EQ(runner->generate(Inputs(), greedy(1)), Error::InvalidState);
  EXPECT_EQ(generated({make_token_input(Tokens(40, 1))}, -1).size(), 8u);
  EXPECT_EQ(runner->generate(Inputs(), greedy(-1)), Error::InvalidArgument);
  EXPECT_EQ(runner->prefill("A").error(), Error::InvalidArgument);
  runner->reset();
  ASSERT_TRUE(runner->prefill({make_token_input(Tokens(48, 1))}).ok());
  EXPECT_EQ(runner->generate(Inputs(), greedy(1)), Error::InvalidArgument);
}

TEST_F(Program, EveryChoiceIsTheProcessors) {
  runner->text_token_generator().add_logit_processor(std::make_shared<Only>(7));
  EXPECT_EQ(generated({image}, 3), (Tokens{7, 7, 7}));
  runner->text_token_generator().clear_logit_processors();
  GenerationConfig config = greedy(4);
  config.grammar_type = "regex";
  config.grammar = "(HI)+";
  std::string text;
  EXPECT_EQ(runner->generate(Inputs(), config, [&](const std::string& piece) { text += piece; }),
            Error::Ok);
  EXPECT_EQ(text, "HIHI");
}

// The program names token 49 as the end, and this tokenizer has no text for it.
TEST_F(Program, EndTokensWithoutTextMayBeIgnored) {
  runner = create_multimodal_runner(path_, std::make_unique<Letters>(49));
  ASSERT_NE(runner, nullptr);
  runner->text_token_generator().add_logit_processor(std::make_shared<Only>(49));
  std::string text;
  const auto show = [&](const std::string& piece) { text += piece; };
  EXPECT_EQ(runner->generate({image}, greedy(3), show), Error::Ok);
  EXPECT_EQ(runner->text_token_generator().chosen_tokens(), (Tokens{49, 49, 49}));
  EXPECT_EQ(text, "");
  runner->text_token_generator().clear_logit_processors();
  runner->text_token_generator().add_logit_processor(std::make_shared<Only>(7));
  EXPECT_EQ(runner->generate(Inputs(), greedy(2), show), Error::Ok);
  EXPECT_EQ(text, "HH");
}

TEST_F(Program, CallbacksThatThrowLeaveWhatWasChosen) {
  const Inputs prompt = {image, make_text_input("AB")};
  const Tokens expected = generated(prompt, 5);
  runner->reset();
  GenerationConfig config = greedy(5);
  config.grammar_type = "regex";
  config.grammar = ".*";
  EXPECT_THROW((void)runner->generate(prompt, config,
                                      [](const std::string&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_EQ(runner->text_token_generator().num_logit_processors(), 0u);
  EXPECT_EQ(runner->text_token_generator().chosen_tokens(),
            Tokens(expected.begin(), expected.begin() + 1));
  EXPECT_EQ(generated({}, 4), Tokens(expected.begin() + 1, expected.end()));
}

TEST_F(Program, TellsWhatItDid) {
  GenerationConfig config = greedy(5);
  config.echo = true;
  std::string text;
  Tokens counts;
  EXPECT_EQ(runner->generate(
                {image, make_text_input("AB")}, config,
                [&](const std::string& piece) {
                  text += piece;
                  if (text.size() == 4) runner->stop();
                },
                [&](const Stats& stats) {
                  counts = {static_cast<uint64_t>(stats.num_prompt_tokens),
                            static_cast<uint64_t>(stats.num_generated_tokens)};
                }),
            Error::Ok);
  EXPECT_EQ(text.substr(0, 2), "AB");
  EXPECT_EQ(text.size(), 4u);
  EXPECT_EQ(counts, (Tokens{6, 2}));
  EXPECT_TRUE(runner->is_loaded());
}

TEST_F(Program, StopsBeforeTheFirstToken) {
  const Inputs prompt = {image, make_text_input("AB")};
  const Tokens expected = generated(prompt, 3);
  runner->reset();
  GenerationConfig config = greedy(3);
  config.echo = true;
  std::string text;
  EXPECT_EQ(runner->generate(prompt, config,
                             [&](const std::string& piece) {
                               text += piece;
                               runner->stop();
                             }),
            Error::Ok);
  EXPECT_EQ(text, "AB");
  EXPECT_EQ(generated({}, 3), expected);
}

/// Stops a runner while its first token is chosen.
class Stops final : public LogitProcessor {
 public:
  explicit Stops(MultimodalRunner& runner) : runner_(runner) {}
  Error process(Tensor) override {
    runner_.stop();
    return Error::Ok;
  }

 private:
  MultimodalRunner& runner_;
};

TEST_F(Program, StopsWhileTheFirstTokenIsChosen) {
  runner->text_token_generator().add_logit_processor(std::make_shared<Stops>(*runner));
  EXPECT_EQ(generated({image}, 9), Tokens());
  runner->text_token_generator().clear_logit_processors();
  EXPECT_EQ(generated({}, 9).size(), 9u);
}

TEST_F(Program, TemperaturesThatAreNoneAreErrors) {
  for (const float temperature : {-1.0f, NAN}) {
    GenerationConfig config = greedy(1);
    config.temperature = temperature;
    EXPECT_EQ(runner->generate({image}, config), Error::InvalidArgument);
  }
  EXPECT_EQ(runner->generate(Inputs(), greedy(1)), Error::InvalidState);
}

TEST_F(Program, CallbacksMayResetIt) {
  const Inputs prompt = {image, make_text_input("AB")};
  const Tokens expected = generated({make_text_input("ABC")}, 5);
  for (const bool echo : {true, false}) {
    runner->reset();
    GenerationConfig config = greedy(3);
    config.echo = echo;
    EXPECT_EQ(runner->generate(prompt, config, [&](const std::string&) { runner->reset(); }),
              echo ? Error::InvalidState : Error::Ok);
    EXPECT_EQ(runner->generate(Inputs(), greedy(1)), Error::InvalidState);
    EXPECT_EQ(generated({make_text_input("ABC")}, 5), expected);
  }
}

TEST_F(Program, WhatIsNoProgramHasNoRunner) {
  EXPECT_EQ(create_multimodal_runner("no such file.pte", std::make_unique<Letters>()), nullptr);
  EXPECT_EQ(create_multimodal_runner(path_, nullptr), nullptr);
}

TEST_F(Program, DecoderNamesWhatDoesNotFit) {
  Module module(path_);
  IOManager io_manager(module);
  MultimodalDecoderRunner decoder(&module, &io_manager);
  EXPECT_EQ(decoder.method_name(), kTextModelMethod);
  EXPECT_FALSE(decoder.is_method_loaded());
  ASSERT_EQ(decoder.load(), Error::Ok);
  EXPECT_TRUE(decoder.is_method_loaded());
  auto tokens = executorch::extension::make_tensor_ptr({1, 6}, std::vector<int64_t>(6));
  EXPECT_EQ(decoder.step(tokens, 0).error(), Error::InvalidArgument);
  tokens = executorch::extension::make_tensor_ptr({1, 2}, std::vector<int64_t>(2));
  EXPECT_EQ(decoder.step(tokens, -1).error(), Error::InvalidArgument);
  EXPECT_EQ(decoder.step(tokens, INT64_MAX).error(), Error::InvalidArgument);
  EXPECT_TRUE(decoder.step(tokens, 0).ok());
  EXPECT_EQ(decoder.decode(executorch::runtime::EValue(1.0), 0).error(), Error::InvalidArgument);
  const auto narrow = executorch::extension::make_tensor_ptr({1, 2, 3}, std::vector<float>(6));
  EXPECT_EQ(decoder.decode(*narrow, 0).error(), Error::InvalidArgument);
}

}  // namespace
