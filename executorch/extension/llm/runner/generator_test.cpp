#include <executorch/extension/llm/runner/language_model.h>
#include <executorch/extension/llm/runner/testing.h>
#include <executorch/extension/llm/runner/text_prefiller.h>
#include <executorch/extension/llm/runner/text_stream.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>

using namespace executorch::extension::llm;
using namespace executorch::extension::llm::runner_testing;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::extension::make_tensor_ptr;
using executorch::runtime::Error;
using executorch::runtime::Result;

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

/// A tokenizer whose texts end with a mark that more tokens move on: it is held back to the end.
class Marked final : public tokenizers::Tokenizer {
 public:
  Marked() { initialized_ = true; }
  tokenizers::Error load(const std::string&) override { return tokenizers::Error::Ok; }
  tokenizers::Result<std::string> id_to_piece(uint64_t token) const override {
    return std::string(1, static_cast<char>('a' + token));
  }
  tokenizers::Result<uint64_t> piece_to_id(const std::string&) const override {
    return tokenizers::Error::OutOfRange;
  }
  tokenizers::Result<std::vector<uint64_t>> encode(const std::string&, int8_t,
                                                   int8_t) const override {
    return std::vector<uint64_t>();
  }
  tokenizers::Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
  tokenizers::Result<std::string> decode_bytes(const std::vector<uint64_t>& tokens,
                                               bool) const override {
    std::string text;
    for (const uint64_t token : tokens) text += static_cast<char>('a' + token);
    return text + ".!";
  }
  bool decodes_by_pairs() const override { return false; }
};

TEST(TextStream, FindsAStopStringThatOnlyTheEndCompletes) {
  const Marked tokenizer;
  TextStream stream(&tokenizer, {}, {"b."});
  EXPECT_EQ(*stream.add(0), "a");
  EXPECT_EQ(*stream.add(1), "");
  EXPECT_FALSE(stream.is_stopped());
  EXPECT_EQ(stream.finish(), "");
  EXPECT_TRUE(stream.is_stopped());
  TextStream other(&tokenizer, {}, {"c"});
  std::string shown = *other.add(0);
  shown += *other.add(1);
  shown += other.finish();
  EXPECT_EQ(shown, "ab.!");
  EXPECT_FALSE(other.is_stopped());
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

TEST(TextTokenGenerator, AStopBeforeTheBeginningCounts) {
  Letters tokenizer;
  SumModel model(true);
  TextTokenGenerator generator(&tokenizer, &model, true, nullptr, nullptr);
  generator.stop();
  EXPECT_EQ(*generator.generate({1}, std::nullopt, 0, 5, 0, {}), 0);
  generator.forget_stop();
  EXPECT_EQ(*generator.generate({1}, std::nullopt, 0, 5, 0, {}), 5);
  generator.stop();
  EXPECT_EQ(*generator.generate({1}, 0, 5), 5);  // forgets it by itself
}

TEST(TextDecoderRunner, IntegersThatDoNotFitAreErrors) {
  struct Open : TextDecoderRunner {
    using TextDecoderRunner::as_input;
  };
  executorch::runtime::runtime_init();
  const auto narrowed = [](int64_t token) {
    return Open::as_input(make_tensor_ptr({1, 2}, std::vector<int64_t>{1, token}), ScalarType::Int,
                          1);
  };
  const auto fits = narrowed(INT32_MAX);
  ASSERT_TRUE(fits.ok());
  EXPECT_EQ((*fits)->const_data_ptr<int32_t>()[1], INT32_MAX);
  for (const int64_t token : {int64_t{-1}, int64_t{1} << 31, (int64_t{1} << 32) + 5}) {
    EXPECT_EQ(narrowed(token).error(), Error::InvalidArgument) << token;
  }
}

TEST(TextDecoderRunner, SamplersOfLargerVocabulariesAreErrors) {
  executorch::runtime::runtime_init();
  TextDecoderRunner wide(nullptr, nullptr, "forward", std::make_unique<Sampler>(9, 0.0f));
  TextDecoderRunner narrow(nullptr, nullptr, "forward", std::make_unique<Sampler>(2, 0.0f));
  const auto logits = make_tensor_ptr({1, 4}, std::vector<float>{1, 2, 4, 3});
  EXPECT_EQ(wide.logits_to_token(*logits), -1);
  EXPECT_EQ(narrow.logits_to_token(*logits), 1);
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
