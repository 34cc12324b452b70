// Sessions of a real program, which tests/llm/sessions_test.py exports and names in
// ET_TEST_PROGRAM.

#include <executorch/extension/llm/runner/program_form.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

using namespace executorch::extension::llm;
using executorch::runtime::Error;

namespace {

using Tokens = std::vector<uint64_t>;

class Sessions : public testing::Test {
 protected:
  void SetUp() override {
    executorch::runtime::runtime_init();
    const char* const path = std::getenv("ET_TEST_PROGRAM");
    if (path == nullptr) GTEST_SKIP() << "tests/llm/sessions_test.py runs this";
    EngineOptions options;
    options.model_path = path;
    auto loaded = TextEngine::load(options);
    ASSERT_TRUE(loaded.ok());
    engine = std::move(*loaded);
  }

  std::unique_ptr<TextSession> session() {
    auto made = engine->create_text_session();
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }

  static Tokens generated(TextSession& session, Tokens prompt, GenerationOptions options = {}) {
    options.sampling.temperature = 0;
    options.max_new_tokens = 20;
    options.ignore_eos = true;
    EXPECT_EQ(session.set_text(std::move(prompt)), Error::Ok);
    const auto result = session.generate(options);
    EXPECT_TRUE(result.ok());
    return result.ok() ? result->tokens : Tokens();
  }

  std::unique_ptr<TextEngine> engine;
};

TEST_F(Sessions, KnowWhetherTheProgramIsIncremental) {
  executorch::extension::Module module(std::getenv("ET_TEST_PROGRAM"));
  const auto form = program_form(module, "forward");
  ASSERT_TRUE(form.ok());
  EXPECT_EQ(form->is_incremental, std::string(std::getenv("ET_TEST_INCREMENTAL")) == "1");
}

TEST_F(Sessions, RunAtTheSameTimeOverOneProgram) {
  std::vector<Tokens> expected, found(4);
  for (uint64_t i = 0; i < 4; ++i) expected.push_back(generated(*session(), {i, 2 * i, 7}));
  std::vector<std::unique_ptr<TextSession>> sessions;
  for (int i = 0; i < 4; ++i) sessions.push_back(session());
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 5; ++round) found[i] = generated(*sessions[i], {i, 2 * i, 7});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
  EXPECT_GT(engine->serving_capacity().estimated_bytes_per_session, 0);
}

TEST_F(Sessions, EditsAndStepsBackGiveWhatAFreshSessionGives) {
  auto edited = session();
  for (const Tokens& prompt : {Tokens{1, 2, 3, 4, 5}, Tokens{1, 2, 9, 4, 5}, Tokens{1, 2},
                               Tokens{1, 2, 9, 4, 5, 6, 7, 8}, Tokens{40}}) {
    EXPECT_EQ(generated(*edited, prompt), generated(*session(), prompt));
  }
}

TEST_F(Sessions, TokenByTokenIsTheSameText) {
  const Tokens expected = generated(*session(), {3, 1, 4, 1, 5});
  auto one = engine->create_session();
  ASSERT_TRUE(one.ok());
  LLMSession& session = **one;
  SamplingConfig greedy;
  greedy.temperature = 0;
  EXPECT_EQ(session.decode_one(greedy).error(), Error::InvalidState);
  ASSERT_EQ(session.prefill_tokens({3, 1, 4}), Error::Ok);
  ASSERT_EQ(session.prefill_tokens({1, 5}, &greedy), Error::Ok);
  Tokens found;
  for (int i = 0; i < 20; ++i) {
    const auto result = session.decode_one(greedy);
    ASSERT_TRUE(result.ok());
    EXPECT_FALSE(result->is_terminal);
    found.push_back(result->token_id);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(session.position(), 25);
  session.stop();
  EXPECT_TRUE(session.decode_one(greedy)->is_terminal);
  ASSERT_EQ(session.reset(), Error::Ok);
  EXPECT_EQ(session.position(), 0);
  EXPECT_EQ(session.prefill_tokens({1000000}), Error::InvalidArgument);
}

TEST_F(Sessions, ScoreGivesTheLogitsThatTokensWereChosenBy) {
  auto one = session();
  Tokens text = {3, 1, 4};
  const Tokens chosen = generated(*one, text);
  text.insert(text.end(), chosen.begin(), chosen.end());
  const auto fresh = session();
  for (TextSession* const known : {one.get(), fresh.get()}) {
    ASSERT_EQ(known->set_text(text), Error::Ok);
    Tokens numbers, found = {3, 1, 4};
    const auto note = [&](size_t i, executorch::runtime::Span<const float> logits) {
      numbers.push_back(i);
      if (i >= 3) found.push_back(*likeliest_token(logits));
      return true;
    };
    ASSERT_EQ(known->score(note), Error::Ok);
    EXPECT_EQ(numbers.size(), text.size() - 1);
    EXPECT_EQ(numbers.front(), 1u);
    EXPECT_EQ(found, text);
    EXPECT_EQ(known->score([](size_t i, auto) { return i < 2; }), Error::EndOfMethod);
    EXPECT_EQ(generated(*known, {3, 1, 4}), chosen);
  }
  ASSERT_EQ(one->set_text({5}), Error::Ok);
  EXPECT_EQ(one->score([](size_t, auto) { return false; }), Error::Ok);  // nothing to tell
}

TEST_F(Sessions, StopFromAnotherThread) {
  auto one = session();
  GenerationOptions options;
  int64_t n = 0;
  options.on_token = [&](uint64_t) {
    if (++n == 5) std::thread([&] { one->stop(); }).join();
  };
  EXPECT_EQ(generated(*one, {1, 2, 3}, options).size(), 5u);
}

TEST_F(Sessions, OptionsThatCannotBeUsedAreErrors) {
  auto one = session();
  EXPECT_EQ(one->generate({}).error(), Error::InvalidState);  // no text
  GenerationOptions options;
  options.sampling.top_p = 2;
  ASSERT_EQ(one->set_text({1}), Error::Ok);
  EXPECT_EQ(one->generate(options).error(), Error::InvalidArgument);
}

}  // namespace
