#include <executorch/extension/llm/tokenizers/unicode_regex.h>

#include <gtest/gtest.h>

namespace tokenizers {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text,
                                 regex::Dialect dialect = regex::Dialect::kRust) {
  UnicodeRegex regex;
  EXPECT_EQ(regex.compile(pattern, dialect), Error::Ok) << regex.message();
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

TEST(UnicodeRegex, ReadsTheSyntaxOfItsDialect) {
  using Texts = std::vector<std::string>;
  struct Case {
    const char* pattern;
    const char* text;
    Texts rust;
    Texts oniguruma;
  };
  const Case cases[] = {{"[[:alpha:]]+", "abé: c", {"ab", "c"}, {"abé", "c"}},
                        {"[a-z&&[^b-d]x]+", "abxz", {"a", "xz"}, {"a", "xz"}},
                        {"[^\\w&&[^\\d]]+", "a1 _.", {"1 ", "."}, {"1 ", "."}},
                        {"[a-f--b-c]+", "abdc-", {"a", "d"}, {"abdc-"}},
                        {"^.", "a\nb", {"a"}, {"a", "b"}},
                        {".$", "a\nb", {"b"}, {"a", "b"}},
                        {".\\Z", "a\n", {}, {"a"}},
                        {"\\d{1,3}+", "1234", {"123", "4"}, {"1234"}},
                        {"\\d{1,3}+\\d", "1234", {"1234"}, {"1234"}},
                        {"a{2}?", "aaa", {"aa"}, {"aa", ""}},
                        {"\\w+", "a²_½\u200db", {"a", "_", "\u200db"}, {"a²_½", "b"}},
                        {"\\b_", "a²_", {"_"}, {}},
                        {"a{2}?|b", "b", {"b"}, {"", ""}}};
  for (const Case& c : cases) {
    EXPECT_EQ(matches(c.pattern, c.text), c.rust) << c.pattern;
    EXPECT_EQ(matches(c.pattern, c.text, regex::Dialect::kOniguruma), c.oniguruma) << c.pattern;
  }
}

TEST(UnicodeRegex, SaysWhichPatternTakesTooManySteps) {
  UnicodeRegex regex;
  ASSERT_EQ(regex.compile("(a|b)*?c|\\S"), Error::Ok);
  EXPECT_EQ(UnicodeRegex::take_failure(), "");
  EXPECT_LT(regex.find_all(std::string(3000, 'a')).size(), 3000u);
  const std::string failure = UnicodeRegex::take_failure();
  EXPECT_EQ(failure.find("the pattern (a|b)*?c|\\S takes too many steps at byte "), 0u) << failure;
  EXPECT_NE(failure.find(" of 3000, before \"aaaa"), std::string::npos) << failure;
  EXPECT_EQ(UnicodeRegex::take_failure(), "");
}

}  // namespace tokenizers
