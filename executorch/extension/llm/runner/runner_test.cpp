#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/llm/runner/irunner.h>
#include <executorch/extension/llm/runner/language_model.h>
#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/runner/text_stream.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <tuple>

using namespace executorch::extension::llm;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::make_tensor_ptr;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::Error;
using executorch::runtime::Result;

namespace {

/// Letters a to y are tokens 0 to 24; 25 ends a text; 26 to 28 are the bytes of U+20AC.
class Letters final : public tokenizers::Tokenizer {
 public:
  Letters() {
    initialized_ = true;
    vocab_size_ = 29;
    bos_tok_ = eos_tok_ = 25;
  }
  tokenizers::Error load(const std::string&) override { return tokenizers::Error::Ok; }
  tokenizers::Result<std::string> id_to_piece(uint64_t token) const override {
    if (token >= 29) return tokenizers::Error::OutOfRange;
    if (token >= 26) return std::string(1, "\xe2\x82\xac"[token - 26]);
    return token == 25 ? std::string("<end>") : std::string(1, static_cast<char>('a' + token));
  }
  tokenizers::Result<uint64_t> piece_to_id(const std::string&) const override {
    return tokenizers::Error::OutOfRange;
  }
  tokenizers::Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos,
                                                   int8_t eos) const override {
    std::vector<uint64_t> tokens(static_cast<size_t>(bos), 25);
    for (const char c : input) tokens.push_back(static_cast<uint64_t>(c - 'a'));
    tokens.insert(tokens.end(), static_cast<size_t>(eos), 25);
    return tokens;
  }
  tokenizers::Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
};

/// A model that says the letter after the sum of all tokens so far, modulo 29: any error in what it
/// is given shows in all that follows.
class SumModel final : public TextDecoderRunner {
 public:
  explicit SumModel(bool has_caches, bool all_positions = false, bool incremental = false,
                    int64_t max_tokens = 64)
      : TextDecoderRunner(nullptr, nullptr) {
    form_.position = has_caches ? ProgramForm::Position::Start : ProgramForm::Position::None;
    form_.max_tokens = max_tokens;
    form_.vocabulary_size = 29;
    form_.is_incremental = incremental;
    form_.gives_all_positions = all_positions;
  }
  Error load() override { return Error::Ok; }
  bool is_method_loaded() override { return true; }

  Result<Tensor> step(TensorPtr& input, int64_t start_pos) override {
    if (fails) return Error::Internal;
    const auto n = static_cast<size_t>(input->numel());
    n_tokens.push_back(n);
    const bool has_caches = form_.position != ProgramForm::Position::None;
    seen.resize(has_caches ? static_cast<size_t>(start_pos) : 0);
    std::vector<float> logits;
    for (size_t i = 0; i < n; ++i) {
      seen.push_back(static_cast<uint64_t>(input->const_data_ptr<int64_t>()[i]));
      std::vector<float> row(29, 0.0f);
      row[next(seen)] = 10;
      if (!form_.gives_all_positions) logits.clear();
      logits.insert(logits.end(), row.begin(), row.end());
    }
    const int n_rows = static_cast<int>(logits.size() / 29);
    output = make_tensor_ptr({1, n_rows, 29}, std::move(logits));
    return Tensor(*output);
  }

  static uint64_t next(const std::vector<uint64_t>& text) {
    return std::accumulate(text.begin(), text.end(), uint64_t{1}) % 29;
  }

  bool fails = false;
  std::vector<uint64_t> seen;
  std::vector<size_t> n_tokens;
  TensorPtr output;
};

std::vector<uint64_t> expected_text(std::vector<uint64_t> text, size_t n) {
  for (size_t i = 0; i < n; ++i) text.push_back(SumModel::next(text));
  return text;
}

std::unique_ptr<TextLLMRunner> make_runner(SumModel*& model, bool has_caches, bool parallel = true,
                                           int64_t chunk = 64) {
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
                                         std::move(generator), std::move(stats), 0.0f);
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

/// Removes all but one token.
class Only final : public LogitProcessor {
 public:
  explicit Only(uint64_t token, size_t most) : token_(token), most_(most) {}
  Error process(Tensor logits) override {
    float* const values = logits.mutable_data_ptr<float>();
    const auto n = logits.size(logits.dim() - 1);
    float* const last = values + logits.numel() - n;
    for (int64_t i = 0; i < n; ++i) {
      if (static_cast<uint64_t>(i) != token_) last[i] = -std::numeric_limits<float>::infinity();
    }
    return Error::Ok;
  }
  Error accept(uint64_t token) override {
    accepted.push_back(token);
    return Error::Ok;
  }
  bool is_complete() const override { return accepted.size() >= most_; }
  std::vector<uint64_t> accepted;

 private:
  uint64_t token_;
  size_t most_;
};

}  // namespace

TEST(TextStream, HoldsBackWhatMayBeAStopAndHalfCharacters) {
  const Letters tokenizer;
  TextStream stream(&tokenizer, {0}, {"cd"});
  std::vector<std::string> pieces;
  for (const uint64_t token : {1, 2, 4, 26, 27, 28, 2}) pieces.push_back(*stream.add(token));
  EXPECT_EQ(pieces, (std::vector<std::string>{"b", "", "ce", "", "", "\xe2\x82\xac", ""}));
  EXPECT_FALSE(stream.is_stopped());
  EXPECT_EQ(*stream.add(3), "");
  EXPECT_TRUE(stream.is_stopped());
  EXPECT_EQ(stream.finish(), "");

  TextStream other(&tokenizer, {0}, {"cd"});
  EXPECT_EQ(*other.add(2), "");
  EXPECT_EQ(other.finish(), "c");
  EXPECT_EQ(other.add(1000).error(), Error::InvalidArgument);
  TextStream none(nullptr, {});
  EXPECT_EQ(*none.add(1000), "");
}

TEST(TextStream, GoesOnInsideACharacterOfThePrompt) {
  const Letters tokenizer;
  for (const std::vector<uint64_t>& prompt :
       {std::vector<uint64_t>{1, 26}, std::vector<uint64_t>{1, 26, 27}}) {
    TextStream stream(&tokenizer, prompt);
    std::string shown;
    for (uint64_t token = prompt.back() + 1; token <= 28; ++token) shown += *stream.add(token);
    EXPECT_EQ(shown + stream.finish(), "\xe2\x82\xac");
  }
}

TEST(LanguageModel, ReadsOnlyWhatIsNewOverCaches) {
  SumModel decoder(true);
  LanguageModel model(decoder, 4);
  const auto logits = [&](std::vector<uint64_t> text) {
    const auto found = model.logits({text.data(), text.size()}, 1, {});
    EXPECT_TRUE(found.ok());
    EXPECT_EQ(decoder.seen, text);
    std::vector<size_t> calls;
    calls.swap(decoder.n_tokens);
    return calls;
  };
  using Calls = std::vector<size_t>;
  EXPECT_EQ(logits({1, 2, 3, 4, 5, 6, 7, 8, 9}), (Calls{4, 4, 1}));
  EXPECT_EQ(logits({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), (Calls{1}));
  EXPECT_EQ(logits({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), (Calls{1}));  // the last is always read
  EXPECT_EQ(logits({1, 2, 3}), (Calls{1}));
  EXPECT_EQ(logits({1, 9, 3, 4}), (Calls{3}));
  EXPECT_EQ(logits({7}), (Calls{1}));
}

// Each run of an incremental program is given the text from its beginning, and 256 tokens more than
// the run before.
TEST(LanguageModel, ReadsLongTextsInPieces) {
  const std::vector<uint64_t> text(700, 1);
  const auto calls = [&](bool has_caches, bool all_positions, bool incremental) {
    SumModel decoder(has_caches, all_positions, incremental, 1000);
    LanguageModel model(decoder, 1000);
    EXPECT_TRUE(model.logits({text.data(), text.size()}, 1, {}).ok());
    EXPECT_EQ(decoder.seen, text);
    const std::vector<size_t> found = decoder.n_tokens;
    decoder.n_tokens.clear();
    EXPECT_TRUE(model.logits({text.data(), text.size()}, 1, {}).ok());
    EXPECT_EQ(decoder.n_tokens, (std::vector<size_t>{has_caches ? size_t{1} : text.size()}));
    return found;
  };
  using Calls = std::vector<size_t>;
  EXPECT_EQ(calls(true, false, false), (Calls{256, 256, 188}));
  EXPECT_EQ(calls(false, false, true), (Calls{256, 512, 700}));
  EXPECT_EQ(calls(false, true, true), (Calls{700}));
  EXPECT_EQ(calls(false, false, false), (Calls{700}));
}

TEST(LanguageModel, AnErrorLeavesNothingThatIsTrusted) {
  SumModel decoder(true);
  LanguageModel model(decoder, 64);
  std::vector<uint64_t> text = {1, 2, 3, 4};
  ASSERT_TRUE(model.logits({text.data(), 4}, 1, {}).ok());
  text.push_back(5);
  decoder.fails = true;
  EXPECT_EQ(model.logits({text.data(), 5}, 1, {}).error(), Error::Internal);
  decoder.fails = false;
  ASSERT_TRUE(model.logits({text.data(), 5}, 1, {}).ok());
  EXPECT_EQ(decoder.seen, text);
}

TEST(LanguageModel, StopsBetweenChunksAndTellsHowFarItIs) {
  SumModel decoder(true);
  LanguageModel model(decoder, 4);
  std::vector<uint64_t> text(10, 1);
  std::atomic<bool> stop{false};
  LanguageModel::Call call;
  call.stop = &stop;
  std::vector<int64_t> done;
  call.on_progress = [&](int64_t n, int64_t total) {
    EXPECT_EQ(total, 10);
    done.push_back(n);
    stop = n >= 4;
  };
  EXPECT_EQ(model.logits({text.data(), 10}, 1, call).error(), Error::EndOfMethod);
  EXPECT_EQ(done, (std::vector<int64_t>{4}));
  stop = false;
  call.on_progress = {};
  EXPECT_TRUE(model.logits({text.data(), 10}, 1, call).ok());
  EXPECT_EQ(decoder.seen, text);
}

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

/// Notes what it is given, and leaves the position.
class NotingPrefiller final : public TextPrefiller {
 public:
  using TextPrefiller::TextPrefiller;
  Result<uint64_t> prefill_chunk(std::vector<uint64_t>& tokens, int64_t& start_pos,
                                 float temperature) override {
    chunks.emplace_back(start_pos, tokens.size());
    temperatures.push_back(temperature);
    if (chunks.size() == fails_at) return Error::InvalidState;
    return tokens.back();
  }
  std::vector<std::pair<int64_t, size_t>> chunks;
  std::vector<float> temperatures;
  size_t fails_at = 0;
};

TEST(TextPrefiller, ChunksFollowEachOtherWhateverADerivedClassDoes) {
  NotingPrefiller prefiller(nullptr, true, true, 3);
  std::vector<uint64_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t position = 10;
  EXPECT_EQ(*prefiller.prefill(tokens, position), 8u);
  const std::vector<std::pair<int64_t, size_t>> expected = {{10, 3}, {13, 3}, {16, 2}};
  EXPECT_EQ(prefiller.chunks, expected);
  EXPECT_EQ(position, 18);
  prefiller.fails_at = expected.size() + 2;
  EXPECT_EQ(prefiller.prefill(tokens, position).error(), Error::InvalidState);
  EXPECT_EQ(position, 21);
}

TEST(TextPrefiller, OnlyTheLastChunkIsSampled) {
  NotingPrefiller prefiller(nullptr, true, true, 3);
  std::vector<uint64_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t position = 0;
  EXPECT_EQ(*prefiller.prefill(tokens, position, 1.5f), 8u);
  EXPECT_EQ(prefiller.temperatures, (std::vector<float>{0, 0, 1.5f}));
  TextPrefiller real(nullptr, true, true, 3);
  for (const float temperature : {-0.1f, NAN, INFINITY}) {
    EXPECT_EQ(real.prefill(tokens, position, temperature).error(), Error::InvalidArgument);
    EXPECT_EQ(real.prefill_chunk(tokens, position, temperature).error(), Error::InvalidArgument);
  }
  EXPECT_EQ(position, 8);
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

TEST(TextTokenGenerator, OnlyItsOwnProcessorLeavesWithAScope) {
  SumModel model(true);
  TextTokenGenerator generator(nullptr, &model, true, nullptr, nullptr);
  const auto first = std::make_shared<Only>(1, 2), second = std::make_shared<Only>(2, 2);
  {
    const ScopedLogitProcessor nothing(generator, nullptr);
    const ScopedLogitProcessor scoped(generator, first);
    generator.add_logit_processor(second);
    EXPECT_EQ(generator.num_logit_processors(), 2u);
  }
  EXPECT_EQ(generator.num_logit_processors(), 1u);
  EXPECT_EQ(*generator.generate({1}, 0, 1), 1);
  EXPECT_EQ(generator.chosen_tokens(), (std::vector<uint64_t>{2}));
}

TEST(TextTokenGenerator, ProcessorsAndEndOfText) {
  const auto tokenizer = std::make_unique<Letters>();
  SumModel model(true);
  TextTokenGenerator generator(
      tokenizer.get(), &model, true,
      std::make_unique<std::unordered_set<uint64_t>>(std::unordered_set<uint64_t>{25}), nullptr);
  const auto only = std::make_shared<Only>(3, 2);
  generator.add_logit_processor(only);
  EXPECT_EQ(generator.num_logit_processors(), 1u);
  std::string text;
  const auto show = [&](const std::string& piece) { text += piece; };
  EXPECT_EQ(*generator.generate({1}, 0, 10, 0, show), 2);
  EXPECT_EQ(text, "dd");
  EXPECT_EQ(only->accepted, (std::vector<uint64_t>{3, 3}));
  generator.clear_logit_processors();
  text.clear();
  EXPECT_EQ(*generator.generate({24}, 0, 10, 0, show), 1);  // 24 + 1 ends the text
  EXPECT_EQ(text, "");
  generator.set_ignore_eos(true);
  EXPECT_EQ(*generator.generate({24}, 0, 4, 0, show), 4);
  EXPECT_EQ(generator.generate({}, 0, 4).error(), Error::InvalidArgument);
}

TEST(TextEngine, SaysWhatIsWrongWithAFile) {
  executorch::runtime::runtime_init();
  EngineOptions options;
  options.model_path = "/no/such/file.pte";
  EXPECT_EQ(TextEngine::load(options).error(), Error::AccessFailed);
}
