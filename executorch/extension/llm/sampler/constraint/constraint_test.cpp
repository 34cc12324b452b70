#include <executorch/extension/llm/sampler/constraint/constraint.h>

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/platform/runtime.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

using namespace ::testing;
using executorch::extension::make_tensor_ptr;
using executorch::extension::llm::ConstrainedText;
using executorch::extension::llm::Constraint;
using executorch::extension::llm::ConstraintProcessor;
using executorch::extension::llm::Vocabulary;
using executorch::runtime::Error;

namespace {

constexpr uint64_t kEnd = 0;

/// The end of text, all bytes, and what is given.
std::shared_ptr<const Vocabulary> vocabulary(std::vector<std::string> more = {}) {
  std::vector<std::string> tokens{""};
  for (int b = 0; b < 256; ++b) tokens.push_back(std::string(1, static_cast<char>(b)));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return std::make_shared<const Vocabulary>(std::move(tokens));
}

std::shared_ptr<Constraint> compile(const std::string& type, const std::string& text,
                                    std::vector<std::string> more = {}) {
  std::string cause;
  auto constraint = Constraint::compile(type, text, vocabulary(std::move(more)), {kEnd}, cause);
  EXPECT_NE(constraint, nullptr) << text << ": " << cause;
  return constraint;
}

std::string cause_of(const std::string& type, const std::string& text) {
  std::string cause;
  EXPECT_EQ(Constraint::compile(type, text, vocabulary(), {kEnd}, cause), nullptr) << text;
  return cause;
}

/// Whether `text` satisfies the constraint; the masks are asked at every byte.
bool matches(const std::shared_ptr<Constraint>& constraint, const std::string& text) {
  ConstrainedText constrained(constraint);
  std::vector<uint64_t> mask;
  for (const char c : text) {
    const uint64_t token = static_cast<uint8_t>(c) + 1u;
    if (constrained.allowed(mask) != Error::Ok) return false;
    const bool allowed = mask[token / 64] >> token % 64 & 1;
    EXPECT_EQ(constrained.accept(token) == Error::Ok, allowed) << text;
    if (!allowed) return false;
  }
  return constrained.may_end();
}

std::vector<uint64_t> allowed_after(const std::shared_ptr<Constraint>& constraint,
                                    const std::string& text) {
  ConstrainedText constrained(constraint);
  EXPECT_EQ(constrained.accept_bytes(text), Error::Ok);
  std::vector<uint64_t> mask, tokens;
  EXPECT_EQ(constrained.allowed(mask), Error::Ok);
  for (uint64_t i = 0; i < mask.size() * 64; ++i) {
    if (mask[i / 64] >> i % 64 & 1) tokens.push_back(i);
  }
  return tokens;
}

class ConstraintTest : public Test {
 protected:
  void SetUp() override { executorch::runtime::runtime_init(); }
};

}  // namespace

TEST_F(ConstraintTest, ReadsRegularExpressions) {
  struct Row {
    const char* pattern;
    std::vector<std::string> whole, other;
  };
  const std::vector<Row> rows = {
      {"abc", {"abc"}, {"", "ab", "abcd", "xabc"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"^(?:a|b)*?c+$", {"c", "abc", "bacc"}, {"ab", "cac"}},
      {"[^a-c\\d]{2,3}", {"xy", "é-\n"}, {"x", "xa", "x1", "wxyz"}},
      {"x{3}", {"xxx"}, {"xx", "xxxx"}},
      {"(?P<n>\\w+)\\s\\S", {"ab1_ x"}, {"ab  x ", "é x"}},
      {".", {"a", "€", "\U0001F600"}, {"\n", "\xff", "\xc0\x80", "\xed\xa0\x80", "ab"}},
      {"\\x41\\u00e9\\u{1F600}\\.", {"Aé\U0001F600."}, {"Aé\U0001F600x"}},
      {"[]a-]+", {"]a-"}, {"b"}},
      {"a{,2}b{1,}", {"b", "aab", "abbb"}, {"aaab", "a"}},
      {"a{b}", {"a{b}"}, {"ab"}},
      {"^a$|^b$", {"a", "b"}, {"ab"}},
      {"(?:(?:a*)*)*", {"", "aaa"}, {"b"}},
  };
  for (const Row& row : rows) {
    const auto constraint = compile("regex", row.pattern);
    for (const std::string& text : row.whole) EXPECT_TRUE(matches(constraint, text)) << text;
    for (const std::string& text : row.other) {
      EXPECT_FALSE(matches(constraint, text)) << row.pattern << ": " << text;
    }
  }
}

TEST_F(ConstraintTest, SaysWhatIsWrongWithAnExpression) {
  for (const auto& [pattern, cause] :
       std::vector<std::pair<const char*, const char*>>{{"(a", "a group without )"},
                                                        {"a)", "unmatched )"},
                                                        {"[a", "a class without ]"},
                                                        {"a**", "a repetition of a repetition"},
                                                        {"*a", "nothing to repeat"},
                                                        {"a{3,2}", "minimum is more than"},
                                                        {"(?=a)", "unsupported kind of group"},
                                                        {"(?i)a", "unsupported kind of group"},
                                                        {"\\bword", "\\b is not supported"},
                                                        {"(a)\\1", "\\1 is not supported"},
                                                        {"a^b", "^ and $ are supported"},
                                                        {"a++", "possessive"},
                                                        {"\\", "expression ends"},
                                                        {"[^\\d\\D]x", "no text can satisfy"},
                                                        {"\xff", "not UTF-8"},
                                                        {"[z-a]", "ends before it begins"}}) {
    EXPECT_NE(cause_of("regex", pattern).find(cause), std::string::npos)
        << cause_of("regex", pattern);
  }
  EXPECT_NE(cause_of("gbnf", "x").find("no kind of constraint"), std::string::npos);
}

TEST_F(ConstraintTest, RefusesWhatWouldTakeTooLong) {
  const auto start = std::chrono::steady_clock::now();
  std::string deep, groups;
  for (int i = 0; i < 5000; ++i) deep += "[", groups += "(";
  for (const std::string& pattern :
       {std::string("a{2147483647}"), std::string("(((a{999}){999}){999}){999}"),
        std::string("(){4294967294}"), groups, std::string(100000, 'a'),
        std::string("(a{1,1000}){1,1000}")}) {
    EXPECT_NE(cause_of("regex", pattern), "");
  }
  std::string nested = "{\"type\":\"array\",\"items\":";
  for (const std::string& schema :
       {std::string(R"({"type":"string","maxLength":2147483648})"),
        std::string(R"({"type":"array","minItems":9007199254740993})"),
        std::string(R"({"type":"array","minItems":-1})"),
        std::string(R"({"type":"object","maxProperties":1e15})"), deep,
        std::string(R"({"$ref":"#"})"), std::string(R"({"anyOf":[{"type":"null"},{"$ref":"#"}]})"),
        std::string(R"({"allOf":[{"$ref":"#"}],"type":"object"})"),
        std::string(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})")}) {
    EXPECT_NE(cause_of("json_schema", schema), "");
  }
  // Wide ones, which time in proportion to the square of their parts would keep busy for hours.
  const auto list = [](int n, const std::string& before, const std::string& after) {
    std::string all;
    for (int i = 0; i < n; ++i) all += (i > 0 ? "," : "") + before + std::to_string(i) + after;
    return all;
  };
  const std::string names = list(60000, "\"", "\""), others = list(60000, "\"x", "\"");
  const auto both = [](const std::string& keyword, const std::string& a, const std::string& b) {
    return R"({"allOf":[{")" + keyword + "\":[" + a + "]},{\"" + keyword + "\":[" + b + "]}]}";
  };
  for (const auto& [schema, cause] : std::vector<std::pair<std::string, std::string>>{
           {R"({"properties":{)" + list(60000, "\"", "\":{}") + "}}", "more than 4096 members"},
           {R"({"anyOf":[)" + list(40000, R"({"const":")", R"("})") + "]}", "states"},
           {R"({"enum":[)" + names + "]}", "states"},
           {R"({"required":[)" + names + "]}", "states"},
           {both("enum", names, others), "too many combinations of values"},
           {both("required", names, others), "too many combinations of values"}}) {
    EXPECT_NE(cause_of("json_schema", schema).find(cause), std::string::npos)
        << cause_of("json_schema", schema);
  }
  // Texts of this one could be anywhere in 2^n ways: it compiles, and its use is bounded.
  const auto subset = compile("regex", "(a|b)*a(a|b){40}");
  ConstrainedText text(subset);
  std::vector<uint64_t> mask;
  for (int i = 0; i < 300; ++i) {
    if (text.allowed(mask) != Error::Ok) break;
    if (text.accept(static_cast<uint64_t>('a' + (i * i / 3) % 2) + 1) != Error::Ok) break;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(ConstraintTest, SaysWhichBoundsOfNumbersItCannotHave) {
  for (const char* bound : {"1e-300", "-5e-324", "0.1234567890123456", "1e-16"}) {
    const std::string schema = R"({"type":"number","minimum":)" + std::string(bound) + "}";
    const std::string cause = cause_of("json_schema", schema);
    EXPECT_NE(cause.find("up to 15 digits behind the point"), std::string::npos) << cause;
  }
  EXPECT_NE(cause_of("json_schema", R"({"type":"number","maximum":1e300})").find("up to 1e15"),
            std::string::npos);
}

TEST_F(ConstraintTest, ReadsSchemas) {
  struct Row {
    const char* schema;
    std::vector<std::string> valid, invalid;
  };
  const std::vector<Row> rows = {
      {"true",
       {"1", "{\"a\": [null, {}]}", " \"\\u00e9\\ud83d\\ude00\""},
       {"", "{", "01", "\"\\ud83d\""}},
      {R"({"type":"integer","minimum":-12,"exclusiveMaximum":105})",
       {"-12", "-1", "0", "9", "104"},
       {"-13", "105", "1.0", "00"}},
      {R"({"type":"number","minimum":0.25,"maximum":10})",
       {"0.25", "0.3", "9.99", "10", "10.0", "3"},
       {"0.2", "0", "10.01", "11", "-1"}},
      {R"({"type":"number","exclusiveMinimum":-1.5,"exclusiveMaximum":0})",
       {"-1.49", "-1", "-0.5"},
       {"-1.5", "0", "0.0", "-1.50", "1"}},
      {R"({"enum":["a\"b","é",1.5,null,{"x":[1]}]})",
       {"\"a\\\"b\"", "\"é\"", "\"\\u00E9\"", "1.5", "null", "{ \"x\" : [1] }"},
       {"\"a\"", "2", "{}"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},)"
       R"("required":["a"],"additionalProperties":false})",
       {"{\"a\":1}", "{ \"a\" : 1 ,\n \"b\":\"\"}"},
       {"{}", "{\"b\":\"\"}", "{\"a\":1,}", "{\"a\":1,\"c\":1}", "{\"b\":\"\",\"a\":1}"}},
      {R"({"type":"object","properties":{"ab":{"type":"null"}},"additionalProperties":{"type":"boolean"}})",
       {"{}", "{\"ab\":null}", "{\"a\":true}", "{\"abc\":true,\"\":false}"},
       {"{\"ab\":true}", "{\"a\\u0062\":true}", "{\"a\":null}"}},
      {R"({"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"integer"},"minItems":1,"maxItems":3})",
       {"[null]", "[null,1, 2]"},
       {"[]", "[1]", "[null,1,2,3]", "[null,null]"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"é€\U0001F600\"", "\"\\n\\ud83d\\ude00\""},
       {"\"a\"", "\"abcd\"", "\"a"}},
      {R"({"type":"string","pattern":"^[a-c]+x"})", {"\"ax\"", "\"abcxyz\""}, {"\"x\"", "\"dax\""}},
      {R"({"type":"string","format":"date"})",
       {"\"2024-02-29\"", "\"1999-12-31\""},
       {"\"2023-02-29\"", "\"2024-13-01\"", "\"1900-02-29\""}},
      {R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/n"}},)"
       R"("required":["v"],"additionalProperties":false}},"$ref":"#/$defs/n"})",
       {"{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}"},
       {"{\"next\":{\"v\":2}}", "{\"v\":1,\"next\":{}}"}},
      {R"({"oneOf":[{"type":"string"},{"type":"array","items":{"$ref":"#"}}]})",
       {"[[\"a\",[]],\"b\"]"},
       {"[1]"}},
      {R"({"allOf":[{"type":["integer","string"]},{"type":["number","null"],"minimum":3}],"maximum":5})",
       {"3", "5"},
       {"2", "6", "null", "\"\"", "3.5"}},
      // As generators of schemas write unions that a property tells apart.
      {R"({"discriminator":{"propertyName":"k"},"x-order":1,"oneOf":[)"
       R"({"type":"object","properties":{"k":{"const":"a"}},"required":["k"],"$anchor":"a"},)"
       R"({"type":"object","properties":{"k":{"const":"b"},"v":{"type":"string",)"
       R"("contentEncoding":"base64","contentMediaType":"image/png"}},"required":["k"]}]})",
       {"{\"k\":\"a\"}", "{\"k\":\"b\",\"v\":\"aa\"}"},
       {"{\"k\":\"c\"}", "{\"k\":\"b\",\"v\":1}"}},
      {R"({"type":"object","properties":{"k":{"const":"x"}},"required":["k"],"anyOf":[)"
       R"({"properties":{"n":{"type":"integer"}},"required":["n"]},{"maxItems":3}],"additionalProperties":true})",
       {"{\"k\":\"x\",\"n\":1}", "{\"k\":\"x\"}"},
       {"{\"n\":1}"}},
  };
  for (const Row& row : rows) {
    const auto constraint = compile("json_schema", row.schema);
    ASSERT_NE(constraint, nullptr);
    for (const std::string& text : row.valid) {
      EXPECT_TRUE(matches(constraint, text)) << row.schema << ": " << text;
    }
    for (const std::string& text : row.invalid) {
      EXPECT_FALSE(matches(constraint, text)) << row.schema << ": " << text;
    }
  }
}

TEST_F(ConstraintTest, NamesThePlaceOfWhatASchemaMustNotHave) {
  for (const auto& [schema, cause] : std::vector<std::pair<const char*, const char*>>{
           {R"({"properties":{"a/b":{"not":{}}}})", "/properties/a~1b/not"},
           {R"({"items":{"multipleOf":2}})", "/items/multipleOf"},
           {R"({"type":"strin"})", "/type"},
           {R"({"$ref":"http://x"})", "/$ref"},
           {R"({"$ref":"#/$defs/x"})", "/$ref"},
           {R"({"type":"string","format":"iri"})", "/format"},
           {R"_({"type":"string","pattern":"(?!a)"})_", "/pattern"},
           {R"({"type":"array","uniqueItems":true})", "/uniqueItems"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "/oneOf/1"},
           {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}],"type":"string"})", "/allOf/1/pattern"},
           {R"({"type":"object","patternProperties":{}})", "/patternProperties"},
           {R"({"type":"string","minLength":"2"})", "/minLength"},
           {R"({"required":"a"})", "/required"},
           {R"({"anyOf":[]})", "/anyOf"},
           {R"([])", "the root"},
           {R"({"type":)", "not JSON"}}) {
    EXPECT_NE(cause_of("json_schema", schema).find(cause), std::string::npos)
        << cause_of("json_schema", schema);
  }
}

TEST_F(ConstraintTest, AllowsTokensOfManyBytesAcrossEndsOfRules) {
  const uint64_t first = 257;
  const auto constraint =
      compile("json_schema", R"({"type":"array","items":{}})",
              {"[[", "]]", "]],[", "\"a\":", "{\"", "true,", "]]]", "\",\"", "é\"", "nul", "]x"});
  EXPECT_EQ(allowed_after(constraint, "[[1"),
            // Digits, dot, exponent, space, comma, and one or two brackets.
            [&] {
              std::vector<uint64_t> tokens;
              for (const char c : std::string("\n ,.0123456789E]e")) {
                tokens.push_back(static_cast<uint64_t>(c) + 1);
              }
              tokens.push_back(first + 1);
              return tokens;
            }());
  const auto deeper = allowed_after(constraint, "[[[1");
  EXPECT_EQ(std::count(deeper.begin(), deeper.end(), first + 2), 1);  // ]],[
  EXPECT_EQ(std::count(deeper.begin(), deeper.end(), first + 6), 1);  // ]]]
  const auto string = allowed_after(constraint, "[\"");
  EXPECT_EQ(std::count(string.begin(), string.end(), first + 7), 1);   // ","
  EXPECT_EQ(std::count(string.begin(), string.end(), first + 10), 1);  // ]x
}

TEST_F(ConstraintTest, EndsWhereATextMayEnd) {
  const auto constraint = compile("regex", "ab?");
  ConstrainedText text(constraint);
  EXPECT_EQ(text.accept(kEnd), Error::InvalidArgument);
  EXPECT_EQ(text.accept('a' + 1), Error::Ok);
  EXPECT_TRUE(text.may_end());
  EXPECT_FALSE(text.is_complete());
  EXPECT_EQ(allowed_after(constraint, "a"), (std::vector<uint64_t>{kEnd, 'b' + 1}));
  EXPECT_EQ(text.accept(kEnd), Error::Ok);
  EXPECT_TRUE(text.is_complete());
  EXPECT_EQ(text.accept('b' + 1), Error::InvalidArgument);
  EXPECT_EQ(text.rollback(1), Error::Ok);
  EXPECT_EQ(text.accept('b' + 1), Error::Ok);
  EXPECT_TRUE(text.is_complete());
  EXPECT_EQ(text.rollback(3), Error::InvalidArgument);
  EXPECT_EQ(text.rollback(2), Error::Ok);
  EXPECT_FALSE(text.may_end());
  EXPECT_EQ(text.accept(1u << 20), Error::InvalidArgument);
}

/// Masks far from the limit are shared, those near it are not; tokens may be longer than what is
/// compared for that.
TEST_F(ConstraintTest, CountsCharactersOfLongTokens) {
  constexpr size_t kLimit = 60;
  std::vector<std::string> more;
  std::vector<size_t> lengths;
  const auto letter = [](int i) { return std::string{'\xd0', static_cast<char>(0xb0 + i)}; };
  for (int i = 0; i < 16 * 16 * 16; ++i) {
    more.push_back(letter(i / 256) + letter(i / 16 % 16) + letter(i % 16));
    lengths.push_back(3);
  }
  for (const size_t n : {7, 8, 9, 25, 59}) {
    more.emplace_back();
    for (size_t i = 0; i < n; ++i) more.back() += letter(static_cast<int>(i % 7));
    lengths.push_back(n);
  }
  const auto constraint = compile("regex", ".{0,60}", more);
  std::string text;
  for (size_t n = 0; n <= kLimit; ++n) {
    std::vector<bool> found(more.size());
    for (const uint64_t token : allowed_after(constraint, text)) {
      if (token > 256) found[token - 257] = true;
    }
    for (size_t i = 0; i < more.size(); ++i) {
      ASSERT_EQ(found[i], lengths[i] <= kLimit - n) << more[i] << " after " << n;
    }
    text += n % 2 == 0 ? letter(3) : "x";
  }
}

TEST_F(ConstraintTest, SaysSoWhenTheVocabularyLacksAByte) {
  std::string cause;
  const auto constraint = Constraint::compile(
      "regex", "xy", std::make_shared<const Vocabulary>(std::vector<std::string>{"x"}), {}, cause);
  ConstrainedText text(constraint);
  std::vector<uint64_t> mask;
  EXPECT_EQ(text.allowed(mask), Error::Ok);
  EXPECT_EQ(text.accept(0), Error::Ok);
  EXPECT_EQ(text.allowed(mask), Error::InvalidState);
}

TEST_F(ConstraintTest, ExcludesLogits) {
  ConstraintProcessor processor(compile("regex", "ab"));
  // More logits than tokens, as models pad them; only the last row counts.
  auto logits = make_tensor_ptr({2, 300}, std::vector<float>(600, 1.0f));
  ASSERT_EQ(processor.process(*logits), Error::Ok);
  for (int i = 0; i < 600; ++i) {
    const float value = logits->const_data_ptr<float>()[i];
    EXPECT_EQ(std::isinf(value), i >= 300 && i != 300 + 'a' + 1) << i;
  }
  EXPECT_EQ(processor.accept('a' + 1), Error::Ok);
  EXPECT_FALSE(processor.is_complete());
  EXPECT_EQ(processor.accept('b' + 1), Error::Ok);
  EXPECT_TRUE(processor.is_complete());
  auto ints = make_tensor_ptr({1, 300}, std::vector<int32_t>(300, 1));
  EXPECT_EQ(processor.process(*ints), Error::InvalidArgument);
}
