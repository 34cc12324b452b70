#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/testing.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <tuple>

using namespace executorch::extension::llm;
using namespace executorch::extension::llm::runner_testing;
using executorch::runtime::Error;

namespace {

std::vector<uint64_t> expected_text(std::vector<uint64_t> text, size_t n) {
  for (size_t i = 0; i < n; ++i) text.push_back(SumModel::next(text));
  return text;
}

std::unique_ptr<TextLLMRunner> make_runner(SumModel*& model, bool has_caches, bool parallel = true,
                                           int64_t chunk = 64, float temperature = 0.0f) {
  auto tokenizer = std::make_unique<Letters>();
  auto decoder = std::make_unique<SumModel>(has_caches);
  model = decoder.get();
  auto stats = std::make_unique<Stats>();
  auto prefiller = std::make_unique<TextPrefiller>(model, has_caches, parallel, chunk);
  auto generator = std::make_unique<TextTokenGenerator>(
      tokenizer.get(), model, has_caches,
      std::make_unique<std::unordered_set<uint64_t>>(std::unordered_set<uint64_t>{99}),
      stats.get());
  std::unordered_map<std::string, int64_t> metadata = {
      {kMaxContextLen, 64}, {kMaxSeqLen, 64}, {kUseKVCache, has_caches}};
  return std::make_unique<TextLLMRunner>(std::move(metadata), std::move(tokenizer), nullptr,
                                         std::move(decoder), std::move(prefiller), nullptr,
                                         std::move(generator), std::move(stats), temperature);
}

std::string generated(TextLLMRunner& runner, const std::string& prompt, int32_t n) {
  GenerationConfig config;
  config.echo = false;
  config.max_new_tokens = n;
  std::string text;
  EXPECT_EQ(runner.generate(prompt, config, [&](const std::string& piece) { text += piece; }),
            Error::Ok);
  return text;
}

}  // namespace

TEST(TextLLMRunner, GeneratesOverCachesAndWithout) {
  for (const bool has_caches : {true, false}) {
    for (const bool parallel : {true, false}) {
      SumModel* model = nullptr;
      auto runner = make_runner(model, has_caches, parallel, 3);
      const Letters tokenizer;
      std::vector<uint64_t> text = {1, 2, 3, 4, 5};
      text = expected_text(text, 6);
      std::string said;
      for (size_t i = 5; i < text.size(); ++i) said += *tokenizer.id_to_piece(text[i]);
      EXPECT_EQ(generated(*runner, "bcdef", 6), said);
      // Goes on with the text so far.
      text.push_back(0);
      const size_t n = text.size();
      text = expected_text(text, 4);
      said.clear();
      for (size_t i = n; i < text.size(); ++i) said += *tokenizer.id_to_piece(text[i]);
      EXPECT_EQ(generated(*runner, "a", 4), said) << has_caches << parallel;
      runner->reset();
      EXPECT_EQ(generated(*runner, "bcdef", 1).size(), 1u);
    }
  }
}

TEST(TextLLMRunner, CallsTheProgramOnceForEachTokenThatItChooses) {
  SumModel* model = nullptr;
  auto runner = make_runner(model, true);
  generated(*runner, "bcdef", 3);
  EXPECT_EQ(model->n_tokens, (std::vector<size_t>{5, 1, 1}));
  model->n_tokens.clear();
  generated(*runner, "ab", 2);
  EXPECT_EQ(model->n_tokens, (std::vector<size_t>{3, 1}));  // with the last one of the text so far
}

TEST(LoadTokenizer, TakesTheFirstAndLastTokenByTheirPlaces) {
  const std::string path = testing::TempDir() + "/small.tiktoken";
  std::ofstream(path) << "YQ== 0\nYg== 1\n";
  const auto load = [&](size_t bos, size_t eos) {
    auto special =
        std::make_unique<std::vector<std::string>>(std::vector<std::string>{"<x>", "<y>", "<z>"});
    return load_tokenizer(path, std::move(special), std::nullopt, bos, eos);
  };
  const auto tokenizer = load(2, 0);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->bos_tok(), 4u);
  EXPECT_EQ(tokenizer->eos_tok(), 2u);
  EXPECT_EQ(*tokenizer->encode("ab", 1, 1), (std::vector<uint64_t>{4, 0, 1, 2}));
  EXPECT_EQ(load(0, 1)->eos_tok(), 3u);
}

TEST(TextLLMRunner, KeepsToAGrammar) {
  SumModel* model = nullptr;
  auto runner = make_runner(model, true);
  GenerationConfig config;
  config.echo = false;
  config.max_new_tokens = 20;
  std::string text;
  const auto show = [&](const std::string& piece) { text += piece; };
  for (const auto& [type, grammar, expected] :
       {std::tuple{"regex", "(ab){2}\u20acx?y", "abab\xe2\x82\xac"},
        {"json_schema", "{\"const\":true}", "true"}}) {
    config.grammar_type = type;
    config.grammar = grammar;
    text.clear();
    EXPECT_EQ(runner->generate("bcd", config, show), Error::Ok);
    EXPECT_EQ(text.substr(0, std::string(expected).size()), expected);
    EXPECT_LE(text.size(), 9u);
    EXPECT_EQ(runner->text_token_generator().num_logit_processors(), 0u);
  }
  config.grammar = "(";
  config.grammar_type = "regex";
  EXPECT_EQ(runner->generate("bcd", config, show), Error::InvalidArgument);
  config.grammar_type = "gbnf";
  EXPECT_EQ(runner->generate("bcd", config, show), Error::InvalidArgument);
}

TEST(TextLLMRunner, PrefillThenAnEmptyPrompt) {
  for (const bool has_caches : {true, false}) {
    SumModel* model = nullptr;
    auto runner = make_runner(model, has_caches);
    const auto next = runner->prefill("bcd");
    ASSERT_TRUE(next.ok());
    EXPECT_EQ(*next, 7u);  // 1 + 1 + 2 + 3
    model->n_tokens.clear();
    GenerationConfig config;
    config.max_new_tokens = 1;
    config.temperature = 0;
    config.num_bos = 1;  // of a prompt, which there is none of
    std::string text;
    const auto note = [&](const std::string& piece) { text += piece; };
    ASSERT_EQ(runner->generate("", config, note), Error::Ok);
    EXPECT_EQ(text, "h");
    EXPECT_EQ(model->n_tokens, (std::vector<size_t>{has_caches ? 1u : 3u}));
    EXPECT_EQ(runner->prefill({make_image_input(Image())}).error(), Error::NotSupported);
  }
}

TEST(TextLLMRunner, TooLongAndEmptyPromptsAreErrors) {
  executorch::runtime::runtime_init();
  SumModel* model = nullptr;
  auto runner = make_runner(model, true);
  EXPECT_EQ(runner->generate("", {}), Error::InvalidState);
  EXPECT_EQ(runner->generate(std::string(65, 'a'), {}), Error::InvalidArgument);
  EXPECT_EQ(generated(*runner, std::string(60, 'a'), -1).size(), 4u);
}

TEST(TextLLMRunner, ErrorsBeforeTheAnswerChangeNothing) {
  for (const bool has_caches : {true, false}) {
    SumModel *model = nullptr, *fresh = nullptr;
    auto runner = make_runner(model, has_caches);
    const std::string first = generated(*runner, "abc", 3);
    model->fails = true;
    EXPECT_EQ(runner->generate("xyx", {}), Error::Internal);
    EXPECT_EQ(runner->generate("", {}), Error::Internal);
    EXPECT_EQ(runner->prefill("xyx").error(), Error::Internal);
    model->fails = false;
    EXPECT_EQ(generated(*runner, "d", 5),
              generated(*make_runner(fresh, has_caches), "abc" + first + "d", 5));
  }
}

TEST(TextLLMRunner, TemperaturesThatAreNoneAreErrors) {
  for (const bool has_caches : {true, false}) {
    SumModel* model = nullptr;
    auto runner = make_runner(model, has_caches, true, 64, -1.0f);
    for (const float temperature : {-0.5f, NAN, INFINITY}) {
      GenerationConfig config;
      config.temperature = temperature;
      std::string text;
      const auto note = [&](const std::string& piece) { text += piece; };
      EXPECT_EQ(runner->generate("abc", config, note), Error::InvalidArgument);
      EXPECT_EQ(text, "");
    }
    EXPECT_EQ(runner->generate("", {}), Error::InvalidState);
  }
}

TEST(TextLLMRunner, StatsEchoAndWarmUp) {
  SumModel* model = nullptr;
  auto runner = make_runner(model, true);
  ASSERT_EQ(runner->warmup("abc", 3), Error::Ok);
  GenerationConfig config;
  config.max_new_tokens = 3;
  std::string text;
  Stats stats;
  int n_calls = 0;
  ASSERT_EQ(runner->generate(
                "ab", config, [&](const std::string& piece) { text += piece; },
                [&](const Stats& found) {
                  ++n_calls;
                  EXPECT_EQ(found.num_prompt_tokens, 2);
                  EXPECT_EQ(found.num_generated_tokens, 3);
                  EXPECT_NE(stats_to_json_string(found).find("\"generated_tokens\":3"),
                            std::string::npos);
                }),
            Error::Ok);
  EXPECT_EQ(n_calls, 1);
  EXPECT_EQ(text.substr(0, 2), "ab");
  EXPECT_EQ(text.size(), 5u);
}

TEST(TextLLMRunner, StopsFromTheCallback) {
  SumModel* model = nullptr;
  auto runner = make_runner(model, true);
  GenerationConfig config;
  config.echo = false;
  int n = 0;
  ASSERT_EQ(runner->generate("ab", config,
                             [&](const std::string&) {
                               if (++n == 3) std::thread([&] { runner->stop(); }).join();
                             }),
            Error::Ok);
  EXPECT_EQ(n, 3);
}

TEST(TextLLMRunner, StopsWhileItReadsThePrompt) {
  for (const bool has_caches : {true, false}) {
    SumModel* model = nullptr;
    auto runner = make_runner(model, has_caches);
    GenerationConfig config;
    config.max_new_tokens = 5;
    std::string text;
    ASSERT_EQ(runner->generate("ab", config,
                               [&](const std::string& piece) {
                                 text += piece;
                                 runner->stop();
                               }),
              Error::Ok);
    EXPECT_EQ(text, "ab");  // the prompt, which comes before anything is read
    SumModel* fresh = nullptr;
    EXPECT_EQ(generated(*runner, "c", 5), generated(*make_runner(fresh, has_caches), "abc", 5));
  }
}

TEST(TextLLMRunner, CallbacksMayResetIt) {
  for (const bool echo : {true, false}) {
    SumModel* model = nullptr;
    auto runner = make_runner(model, true);
    GenerationConfig config;
    config.echo = echo;
    config.max_new_tokens = 5;
    const auto reset = [&](const std::string&) { runner->reset(); };
    EXPECT_EQ(runner->generate("abc", config, reset), echo ? Error::InvalidState : Error::Ok);
    SumModel* fresh = nullptr;
    EXPECT_EQ(generated(*runner, "defg", 5), generated(*make_runner(fresh, true), "defg", 5));
  }
}

TEST(TextLLMRunner, CallbacksThatThrowLeaveWhatWasChosen) {
  for (const bool has_caches : {true, false}) {
    SumModel* model = nullptr;
    auto runner = make_runner(model, has_caches);
    GenerationConfig config;
    config.echo = false;
    config.grammar_type = "regex";
    config.grammar = "[a-z]{9}";
    std::string text;
    const auto show = [&](const std::string& piece) {
      text += piece;
      if (text.size() == 3) throw std::runtime_error("no more");
    };
    EXPECT_THROW((void)runner->generate("abc", config, show), std::runtime_error);
    EXPECT_EQ(runner->text_token_generator().num_logit_processors(), 0u);
    SumModel* fresh = nullptr;
    EXPECT_EQ(generated(*runner, "d", 5),
              generated(*make_runner(fresh, has_caches), "abc" + text + "d", 5));
  }
}

TEST(TextEngine, SaysWhatIsWrongWithAFile) {
  executorch::runtime::runtime_init();
  EngineOptions options;
  options.model_path = "/no/such/file.pte";
  EXPECT_EQ(TextEngine::load(options).error(), Error::AccessFailed);
}
