// Programs whose results are not what their files promise of a language model.

#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/extension/llm/runner/text_session.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/extension/llm/sampler/constraint/constraint.h>
#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>

namespace executorch::extension::llm {
namespace {

using aten::ScalarType;
using runtime::Error;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

constexpr int32_t kVocabulary = 8;
constexpr int8_t kDynamic = 1;
using Part = std::function<int32_t(PlanBuilder&)>;

/// A file with forward(tokens [1, 4 at most]), which returns what `logits` makes, get_eos_ids(), and
/// methods that return numbers. With some of these forward() has caches and takes a position too.
class File {
 public:
  explicit File(const Part& logits, const Part& eos = nullptr,
                const std::vector<std::pair<const char*, int64_t>>& numbers = {}) {
    ProgramBuilder builder;
    builder.constants.push_back(ProgramBuilder::bytes(std::vector<float>(kVocabulary, 1)));
    std::vector<float> table(kVocabulary * kVocabulary, 1);
    std::fill_n(table.end() - kVocabulary, kVocabulary, std::numeric_limits<float>::quiet_NaN());
    builder.constants.push_back(ProgramBuilder::bytes(table));
    PlanBuilder& plan = builder.method();
    plan.inputs = {plan.tensor({.sizes = {1, 4}, .dtype = ScalarType::Long, .dynamism = kDynamic})};
    if (!numbers.empty()) {
      plan.inputs.push_back(plan.tensor({.sizes = {1}, .dtype = ScalarType::Long}));
    }
    plan.outputs = {logits(plan)};
    plan.arenas = {0, 1024};
    if (eos != nullptr) {
      PlanBuilder& method = builder.method("get_eos_ids");
      method.arenas = {0, 1 << 20};
      method.outputs = {eos(method)};
    }
    for (const auto& [name, number] : numbers) {
      PlanBuilder& method = builder.method(name);
      method.outputs = {method.integer(number)};
    }
    const auto bytes = builder.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~File() { std::remove(path.c_str()); }
  const std::string path = ::testing::TempDir() + "hostile_model.pte";
};

const std::vector<std::pair<const char*, int64_t>> kCaches = {{"get_max_seq_len", 4},
                                                              {"get_max_context_len", 64}};

int32_t result(PlanBuilder& plan, int32_t n_rows = 1) {
  return plan.tensor({.sizes = {1, n_rows, kVocabulary}, .memory_id = 1, .dynamism = kDynamic});
}

int32_t integers(PlanBuilder& plan, const std::vector<int64_t>& items) {
  std::vector<int64_t> values;
  for (const int64_t item : items) values.push_back(plan.integer(item));
  return plan.integers(values);
}

/// ones(sizes).
Part ones(std::vector<int64_t> sizes) {
  return [sizes](PlanBuilder& plan) {
    const int32_t out = result(plan, std::max(1, static_cast<int32_t>(sizes[1])));
    plan.kernel("aten::ones.out", {integers(plan, sizes), out, out});
    return out;
  };
}

int32_t constant(PlanBuilder& plan) {
  return plan.tensor({.sizes = {1, 1, kVocabulary}, .data = 1});
}

/// Rows of a table by the tokens: of ones, and of NaN for the last token.
int32_t looked_up(PlanBuilder& plan) {
  const int32_t table = plan.tensor({.sizes = {kVocabulary, kVocabulary}, .data = 2});
  const int32_t padding = plan.integer(-1), no = plan.boolean(false), out = result(plan, 4);
  plan.kernel("aten::embedding.out", {table, plan.inputs[0], padding, no, no, out, out});
  return out;
}

/// A number takes the place of the logits.
int32_t moved(PlanBuilder& plan) {
  const int32_t number = plan.tensor({.sizes = {}, .data = 1}), out = result(plan);
  plan.move(number, out);
  return out;
}

runtime::Result<std::unique_ptr<TextEngine>> load(
    const File& file, std::shared_ptr<const tokenizers::Tokenizer> tokenizer = nullptr) {
  EngineOptions options;
  options.model_path = file.path;
  options.tokenizer = std::move(tokenizer);
  return TextEngine::load(options);
}

Error generate(const File& file, int32_t n_draft = 0, int32_t n_tokens = 2) {
  auto engine = load(file);
  if (!engine.ok()) return engine.error();
  auto session = (*engine)->create_text_session();
  if (!session.ok()) return session.error();
  EXPECT_EQ((*session)->set_text({1}), Error::Ok);
  GenerationOptions wanted;
  wanted.max_new_tokens = n_tokens;
  wanted.n_draft = n_draft;
  return (*session)->generate(wanted).error();
}

class HostileModel : public ::testing::Test {
 protected:
  void SetUp() override { runtime::runtime_init(); }
};

TEST_F(HostileModel, LogitsWithoutVocabularyAreAnError) {
  EXPECT_EQ(generate(File(ones({1, 1, kVocabulary}))), Error::Ok);
  EXPECT_EQ(generate(File(ones({1, 1, 0}))), Error::InvalidProgram);
  EXPECT_EQ(generate(File(ones({0, 1, kVocabulary}))), Error::InvalidProgram);
  EXPECT_EQ(generate(File(moved)), Error::InvalidProgram);
}

TEST_F(HostileModel, TokensThatCannotBeReadAreNotKept) {
  const File file(moved);
  const auto engine = load(file);
  ASSERT_TRUE(engine.ok());
  const auto session = (*engine)->create_session();
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->prefill_tokens({1, 2}), Error::InvalidProgram);
  EXPECT_EQ((*session)->position(), 0);
  EXPECT_EQ((*session)->decode_one({}).error(), Error::InvalidState);
}

// A draft is as long as the program's calls may be, whatever is asked for.
TEST_F(HostileModel, DraftsFitTheCallsOfTheProgram) {
  for (const int64_t max_seq_len : {1, 2, 3, 4, 1000}) {
    const File file(ones({1, 4, kVocabulary}), nullptr,
                    {{"get_max_seq_len", max_seq_len}, {"get_max_context_len", 64}});
    for (const int32_t n_draft : {0, 1, 3, 100}) {
      EXPECT_EQ(generate(file, n_draft, 20), Error::Ok) << max_seq_len << ", " << n_draft;
    }
  }
}

/// Sets every logit, so that one token is the likeliest.
class Sets final : public LogitProcessor {
 public:
  explicit Sets(ssize_t token = 3) : token_(token) {}
  Error process(aten::Tensor logits) override {
    for (ssize_t i = 0; i < logits.numel(); ++i) logits.mutable_data_ptr<float>()[i] = i == token_;
    return Error::Ok;
  }
  Error accept(uint64_t) override { return Error::Ok; }

 private:
  ssize_t token_;
};

TEST_F(HostileModel, WhatWasKeptIsComputedAgainAfterNaN) {
  const File file(looked_up, nullptr, kCaches);
  const auto engine = load(file);
  ASSERT_TRUE(engine.ok());
  const auto session = (*engine)->create_text_session();
  ASSERT_TRUE(session.ok());
  GenerationOptions wanted;
  wanted.max_new_tokens = 1;
  wanted.sampling.token_bias = {{kVocabulary - 1, -100.0f}};
  const auto reused = [&](std::vector<uint64_t> text) -> int64_t {
    EXPECT_EQ((*session)->set_text(std::move(text)), Error::Ok);
    const auto found = (*session)->generate(wanted);
    return found.ok() ? found->n_reused_tokens : -1;
  };
  EXPECT_EQ(reused({1, 2, 3}), 0);
  EXPECT_EQ(reused({1, 2, 4}), 2);
  EXPECT_EQ(reused({1, 2, kVocabulary - 1}), -1);
  EXPECT_EQ(reused({1, 2, 3}), 0);
}

TEST_F(HostileModel, BiasOfATokenOutsideOfTheVocabularyIsAnError) {
  const File file(constant);
  const auto engine = load(file);
  ASSERT_TRUE(engine.ok());
  const auto session = (*engine)->create_text_session();
  ASSERT_TRUE(session.ok());
  ASSERT_EQ((*session)->set_text({1}), Error::Ok);
  GenerationOptions wanted;
  wanted.max_new_tokens = 1;
  wanted.sampling.token_bias = {{kVocabulary - 1, 1.0f}};
  EXPECT_TRUE((*session)->generate(wanted).ok());
  wanted.sampling.token_bias = {{kVocabulary, 1.0f}};
  EXPECT_EQ((*session)->generate(wanted).error(), Error::InvalidArgument);
}

// They are mapped for reading only.
TEST_F(HostileModel, ConstantLogitsAreNotWritten) {
  const File file(constant);
  Module module(file.path, Module::LoadMode::Mmap);
  TextDecoderRunner decoder(&module, nullptr);
  TextTokenGenerator generator(nullptr, &decoder, false, nullptr, nullptr);
  generator.add_logit_processor(std::make_shared<Sets>());
  EXPECT_EQ(generator.generate({1}, std::nullopt, 0, 2, 0, nullptr).error(), Error::Ok);
  EXPECT_EQ(generator.chosen_tokens(), (std::vector<uint64_t>{3, 3}));
}

TEST_F(HostileModel, IdsThatBecameOtherValuesAreNone) {
  const auto ids = [](const Part& eos) {
    const File file(ones({1, 1, kVocabulary}), eos);
    Module module(file.path);
    return read_eos_ids(module, nullptr);
  };
  using Ids = std::unordered_set<uint64_t>;
  EXPECT_EQ(ids([](PlanBuilder& plan) { return integers(plan, {2, 3}); }), (Ids{2, 3}));
  EXPECT_EQ(ids([](PlanBuilder& plan) {
              const int32_t list = integers(plan, {2, 3});
              plan.move(plan.number(1.5), list - 1);  // its last item
              return list;
            }),
            Ids{});
  const auto zeros = [](int32_t n) {
    return [n](PlanBuilder& plan) {
      return plan.tensor({.sizes = {n}, .memory_id = 1, .dtype = ScalarType::Long});
    };
  };
  EXPECT_EQ(ids(zeros(3)), Ids{0});
  EXPECT_EQ(ids(zeros((1 << 16) + 1)), Ids{});
}

/// Letters a to e, but for c, are tokens 0 to 4: fewer than the program has logits.
class FewLetters final : public tokenizers::Tokenizer {
 public:
  FewLetters() {
    initialized_ = true;
    vocab_size_ = 5;
  }
  tokenizers::Error load(const std::string&) override { return tokenizers::Error::Ok; }
  tokenizers::Result<std::string> id_to_piece(uint64_t token) const override {
    if (token == 2 || token >= 5) return tokenizers::Error::OutOfRange;
    return std::string(1, static_cast<char>('a' + token));
  }
  tokenizers::Result<uint64_t> piece_to_id(const std::string&) const override {
    return tokenizers::Error::OutOfRange;
  }
  tokenizers::Result<std::vector<uint64_t>> encode(const std::string& input, int8_t,
                                                   int8_t) const override {
    return std::vector<uint64_t>(input.size(), 0);
  }
  tokenizers::Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
};

// Vocabularies of programs are often rounded up.
TEST_F(HostileModel, TokensThatTheTokenizerLacksAreNotChosen) {
  const Part ids = [](PlanBuilder& plan) { return integers(plan, {6}); };
  for (const bool ends : {false, true}) {
    const File file(ones({1, 1, kVocabulary}), ends ? ids : nullptr, kCaches);
    const auto engine = load(file, std::make_shared<const FewLetters>());
    ASSERT_TRUE(engine.ok());
    auto session = (*engine)->create_text_session();
    ASSERT_TRUE(session.ok());
    ASSERT_EQ((*session)->set_text({1}), Error::Ok);
    GenerationOptions wanted;
    wanted.max_new_tokens = 60;
    wanted.sampling.temperature = 1;
    wanted.sampling.token_bias[7] = 20;
    if (!ends) wanted.stop_tokens = {7};
    const auto result = (*session)->generate(wanted);
    ASSERT_TRUE(result.ok());
    // Those that end a text need no text of their own.
    EXPECT_EQ(result->finish_reason, ends ? FinishReason::EndOfText : FinishReason::StopToken);
    wanted.sampling.token_bias.clear();
    wanted.stop_tokens.clear();
    const auto free = (*session)->generate(wanted);
    ASSERT_TRUE(free.ok());
    EXPECT_EQ(free->finish_reason, ends ? FinishReason::EndOfText : FinishReason::Length);
    for (const uint64_t token : free->tokens) EXPECT_TRUE(token < 5 && token != 2) << token;
  }
}

// One of them lies behind the vocabularies of tokenizer and program.
TEST_F(HostileModel, EndTokensWithoutTextMayBeIgnored) {
  const File file(
      ones({1, 1, kVocabulary}),
      [](PlanBuilder& plan) {
        return integers(plan, {6, 99});
      },
      kCaches);
  auto runner = create_text_llm_runner(file.path, std::make_unique<FewLetters>());
  ASSERT_NE(runner, nullptr);
  GenerationConfig config;
  config.echo = false;
  config.max_new_tokens = 20;
  config.temperature = 0;
  std::string text;
  const auto show = [&](const std::string& piece) { text += piece; };
  for (const bool ignores : {false, true}) {
    config.ignore_eos = ignores;
    runner->reset();
    runner->text_token_generator().clear_logit_processors();
    runner->text_token_generator().add_logit_processor(std::make_shared<Sets>(6));
    ASSERT_EQ(runner->generate("ab", config, show), Error::Ok);
    EXPECT_EQ(runner->text_token_generator().chosen_tokens(),
              std::vector<uint64_t>(ignores ? 20 : 1, 6));
    EXPECT_EQ(text, "");
  }
  runner->text_token_generator().clear_logit_processors();
  ASSERT_EQ(runner->generate("b", config, show), Error::Ok);
  EXPECT_EQ(text, std::string(20, 'a'));
}

TEST_F(HostileModel, EndTokensWithoutTextEndConstraints) {
  const File file(
      ones({1, 1, kVocabulary}), [](PlanBuilder& plan) { return integers(plan, {6}); }, kCaches);
  auto runner = create_text_llm_runner(file.path, std::make_unique<FewLetters>());
  ASSERT_NE(runner, nullptr);
  runner->text_token_generator().add_logit_processor(std::make_shared<Sets>(6));
  GenerationConfig config;
  config.max_new_tokens = 20;
  config.temperature = 0;
  config.grammar_type = "regex";
  config.grammar = "a*";
  ASSERT_EQ(runner->generate("ab", config), Error::Ok);
  EXPECT_EQ(runner->text_token_generator().chosen_tokens(), std::vector<uint64_t>{6});
}

TEST_F(HostileModel, RunnersDoNotChooseThemEither) {
  const File file(ones({1, 1, kVocabulary}), nullptr, kCaches);
  auto runner = create_text_llm_runner(file.path, std::make_unique<FewLetters>());
  ASSERT_NE(runner, nullptr);
  GenerationConfig config;
  config.echo = false;
  config.max_new_tokens = 50;
  config.temperature = 1;
  std::string text;
  ASSERT_EQ(runner->generate("ab", config, [&](const std::string& piece) { text += piece; }),
            Error::Ok);
  EXPECT_EQ(text.size(), 50u);
  EXPECT_EQ(text.find_first_not_of("abde"), std::string::npos);
}

}  // namespace
}  // namespace executorch::extension::llm
