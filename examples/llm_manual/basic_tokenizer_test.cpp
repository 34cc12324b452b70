#include "basic_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "basic_sampler.h"

namespace {

class BasicTokenizerTest : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  BasicTokenizer tokenizer(const std::string& json) {
    std::ofstream(path_) << json;
    return BasicTokenizer(path_);
  }

  const std::string path_ = ::testing::TempDir() + "basic_tokenizer_test_vocab.json";
};

using Tokens = std::vector<int64_t>;

constexpr char kVocab[] =
    R"({"Hello": 15496, "\u0120world": 995, "!": 0, "\u0120": 220, "world": 6894, "H": 39,
        "\u00c3": 127, "\u00a9": 102, "\u010a": 198, "\"": 1, "\\": 59, "\u0120wor": 476, "ld": 335,
        "<|endoftext|>": 50256})";

TEST_F(BasicTokenizerTest, KeepsASpaceWithTheWordBehindItAndIsolatesPunctuation) {
  EXPECT_EQ(tokenizer(kVocab).encode("Hello world!"), (Tokens{15496, 995, 0}));
  EXPECT_EQ(tokenizer(kVocab).encode("Hello  world"), (Tokens{15496, 220, 995}));
  EXPECT_EQ(tokenizer(kVocab).encode(""), Tokens{});
}

TEST_F(BasicTokenizerTest, CutsUnknownWordsIntoTheLongestKnownPieces) {
  EXPECT_EQ(tokenizer(kVocab).encode("HelloH world"), (Tokens{15496, 39, 995}));
  EXPECT_EQ(tokenizer(kVocab).encode(" worldld"), (Tokens{995, 335}));
  EXPECT_EQ(tokenizer(kVocab).encode("\xc3\xa9"), (Tokens{127, 102}));
}

TEST_F(BasicTokenizerTest, LeavesOutBytesThatNoTokenHas) {
  EXPECT_EQ(tokenizer(kVocab).encode("zH"), Tokens{39});
}

TEST_F(BasicTokenizerTest, UnderstandsEveryEscape) {
  const auto t = tokenizer(kVocab);
  EXPECT_EQ(t.decode({1}), "\"");
  EXPECT_EQ(t.decode({59}), "\\");
  EXPECT_EQ(t.decode({198}), "\n");
  EXPECT_EQ(t.decode({127, 102}), "\xc3\xa9");
}

TEST_F(BasicTokenizerTest, DecodesWhatItEncodes) {
  const auto t = tokenizer(kVocab);
  const std::string text = "Hello world!\nHello  world\"\\ \xc3\xa9";
  EXPECT_EQ(t.decode(t.encode(text)), text);
}

TEST_F(BasicTokenizerTest, SkipsUnknownIdsInDecode) {
  EXPECT_EQ(tokenizer(kVocab).decode({15496, 77777, 995}), "Hello world");
}

using BasicTokenizerDeathTest = BasicTokenizerTest;

TEST_F(BasicTokenizerDeathTest, MissingFileEndsWithCode9) {
  EXPECT_EXIT(BasicTokenizer("/no/such/vocab.json"), ::testing::ExitedWithCode(9),
              "cannot open vocabulary file /no/such/vocab.json");
}

TEST_F(BasicTokenizerDeathTest, MalformedFilesEndWithCode1) {
  for (const char* json : {"", "{", "[1, 2]", R"({"a": "b"})", R"({"a": -1})", R"({"a": 1.5})"}) {
    EXPECT_EXIT(tokenizer(json), ::testing::ExitedWithCode(1), path_) << json;
  }
}

TEST(BasicSampler, PicksTheFirstLargestLogit) {
  EXPECT_EQ(BasicSampler().sample({0.5f, 2.0f, -1.0f, 2.0f}), 1);
}

}  // namespace
