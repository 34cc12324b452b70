#include <executorch/extension/llm/tokenizers/unicode_regex.h>

#include <gtest/gtest.h>

namespace tokenizers {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  UnicodeRegex regex;
  EXPECT_EQ(regex.compile(pattern), Error::Ok) << regex.message();
  std::vector<std::string> found;
  for (const Match& match : regex.find_all(text)) {
    found.push_back(text.substr(match.start, match.end - match.start));
  }
  return found;
}

}  // namespace

TEST(UnicodeRegex, GoesBackOverCharacters) {
  EXPECT_EQ(matches(".+b", "é€🙂b€"), std::vector<std::string>{"é€🙂b"});
  EXPECT_EQ(matches("(?<=€..)x", "€🙂éx"), std::vector<std::string>{"x"});
}

TEST(UnicodeRegex, GoesBackOverBytesThatAreNoCharacters) {
  // Each has other lengths forward than its continuation bytes say backward.
  for (const std::string bytes :
       {"\x80\x80\x80\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x99", "\xff\xbf\xbf",
        "\xc0\x80", "\xe2\x82\xe2\x82\xac\xac"}) {
    EXPECT_EQ(matches("[^a]*b", bytes + "b" + bytes), std::vector<std::string>{bytes + "b"});
    EXPECT_EQ(matches("[^b]+(?!.)", "b" + bytes), std::vector<std::string>{bytes});
    EXPECT_EQ(matches("[^b]{1,9}b", bytes).size(), 0u);
    EXPECT_EQ(matches("(?<=[^b])b", bytes + "b"), std::vector<std::string>{"b"});
  }
}

}  // namespace tokenizers
