#include <executorch/extension/llm/server/scripted_model.h>
#include <executorch/extension/llm/server/session_pool.h>

#include <gtest/gtest.h>

#include <new>
#include <thread>

using namespace executorch::extension::llm::server;
using executorch::extension::llm::GenerationOptions;
using namespace std::chrono_literals;

namespace {

class SessionPoolTest : public testing::Test {
 protected:
  SessionPoolTest() : model({[](const std::string&) { return ""; }}), pool(model, 2, 1) {}

  SessionPool::Answer take(const std::string& prompt, std::chrono::milliseconds patience = 10s) {
    return pool.take(tokens(prompt), std::chrono::steady_clock::now() + patience,
                     [] { return false; });
  }
  std::vector<uint64_t> tokens(const std::string& text) { return *model.encode(text, 0); }
  /// Takes a text, and lets it remember `prompt`.
  void* use(const std::string& prompt) {
    const auto answer = take(prompt);
    (**answer.lease).generate(tokens(prompt), GenerationOptions()).ok();
    return &**answer.lease;
  }

  ScriptedModel model;
  SessionPool pool;
};

}  // namespace

TEST_F(SessionPoolTest, GivesConversationsTheirText) {
  void* const first = use("a first conversation");
  void* const second = use("another one");
  EXPECT_NE(first, second);
  EXPECT_EQ(use("a first conversation goes on"), first);
  EXPECT_EQ(use("another one, too"), second);
  EXPECT_EQ(use("a first conversation goes on and on"), first);
  EXPECT_EQ(model.n_texts, 2);
  // Nothing in common: the one that was used less recently.
  EXPECT_EQ(use("third"), second);
}

TEST_F(SessionPoolTest, LetsWaitAndRefuses) {
  auto first = take("a"), second = take("b");
  ASSERT_TRUE(first.lease && second.lease);
  EXPECT_EQ(take("c", 20ms).refusal, SessionPool::Refusal::TimedOut);
  EXPECT_EQ(
      pool.take(tokens("c"), std::chrono::steady_clock::now() + 10s, [] { return true; }).refusal,
      SessionPool::Refusal::Cancelled);
  std::thread waiting([&] { EXPECT_NE(take("c").lease, nullptr); });
  while (pool.n_waiting() == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(take("d").refusal, SessionPool::Refusal::Busy);
  EXPECT_EQ(pool.n_busy(), 2u);
  first.lease.reset();
  waiting.join();
  EXPECT_EQ(pool.n_waiting(), 0u);
}

TEST(SessionPool, ARequestThatThrowsDoesNotKeepOthersWaiting) {
  class Throws : public ScriptedModel {
   public:
    Throws() : ScriptedModel({[](const std::string&) { return ""; }}) {}
    executorch::runtime::Result<std::unique_ptr<ServedText>> create_text() override {
      if (n_texts == 0) {
        ++n_texts;
        throw std::bad_alloc();
      }
      return ScriptedModel::create_text();
    }
  } model;
  SessionPool pool(model, 1, 1);
  const auto deadline = std::chrono::steady_clock::now() + 1s;
  EXPECT_THROW(pool.take({1}, deadline, [] { return false; }), std::bad_alloc);
  EXPECT_EQ(pool.n_waiting(), 0u);
  EXPECT_NE(pool.take({1}, deadline, [] { return false; }).lease, nullptr);
}

TEST_F(SessionPoolTest, StopsWhatWaitsAndComes) {
  auto first = take("a"), second = take("b");
  std::thread waiting([&] { EXPECT_EQ(take("c").refusal, SessionPool::Refusal::Cancelled); });
  while (pool.n_waiting() == 0) std::this_thread::sleep_for(1ms);
  pool.stop();
  waiting.join();
  EXPECT_EQ(take("d", 1s).lease, nullptr);
}
