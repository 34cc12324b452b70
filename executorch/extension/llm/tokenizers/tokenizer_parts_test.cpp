#include <gtest/gtest.h>
#include <pytorch/tokenizers/bpe_tokenizer_base.h>
#include <pytorch/tokenizers/llama2c_tokenizer.h>
#include <pytorch/tokenizers/normalizer.h>
#include <pytorch/tokenizers/pcre2_regex.h>
#include <pytorch/tokenizers/post_processor.h>
#include <pytorch/tokenizers/pre_tokenizer.h>
#include <pytorch/tokenizers/re2_regex.h>
#include <pytorch/tokenizers/special_token_matcher.h>
#include <pytorch/tokenizers/std_regex.h>
#include <pytorch/tokenizers/string_integer_map.h>
#include <pytorch/tokenizers/tiktoken.h>
#include <pytorch/tokenizers/token_decoder.h>

using namespace tokenizers;
using nlohmann::json;
using Texts = std::vector<std::string>;
using Ids = std::vector<uint64_t>;

namespace {

Texts matches(const IRegex& regex, const std::string& text) {
  Texts found;
  for (const Match& match : regex.find_all(text)) {
    found.push_back(text.substr(match.start, match.end - match.start));
  }
  return found;
}

}  // namespace

TEST(TokenizerParts, MapsStringsAndNumbersBothWays) {
  using Pairs = std::vector<std::pair<std::string, uint64_t>>;
  const detail::TokenMap map(Pairs{{"a", 3}, {"bc", 5}});
  const detail::TokenMap copy = map;
  EXPECT_EQ(copy.tryGetInteger("bc"), 5u);
  EXPECT_EQ(copy.tryGetString(3), "a");
  EXPECT_FALSE(copy.tryGetInteger("b").has_value());
  EXPECT_FALSE(copy.tryGetString(4).has_value());
  EXPECT_TRUE(detail::build_token_map(Pairs{{"a", 0}, {"b", 1}}).ok());
  EXPECT_FALSE(detail::build_token_map(Pairs{{"a", 0}, {"a", 1}}).ok());
  EXPECT_FALSE(detail::build_token_map(Pairs{{"a", 0}, {"b", 0}}).ok());
  const auto regex = detail::build_special_token_regex(map);
  ASSERT_TRUE(regex.ok());
  EXPECT_EQ(matches(**regex, "xbcab"), (Texts{"bc", "a"}));
}

TEST(TokenizerParts, FindsTheLongestSpecialToken) {
  SpecialTokenMatcher matcher({"<|a|>", "<|a|>b", "<"});
  EXPECT_EQ(matches(matcher, "x<|a|>b<|a|>c<|"), (Texts{"<|a|>b", "<|a|>", "<"}));
  ASSERT_EQ(matcher.compile("<\\|x\\|>|y"), Error::Ok);
  EXPECT_EQ(matches(matcher, "y<|x|><|a|>"), (Texts{"y", "<|x|>"}));
  EXPECT_EQ(matcher.compile("y\\"), Error::RegexFailure);
  EXPECT_TRUE(SpecialTokenMatcher().find_all("abc").empty());
}

TEST(TokenizerParts, RegexEnginesByName) {
  StdRegex std_regex;
  Re2Regex re2;
  Pcre2Regex pcre2;
  for (IRegex* regex : {static_cast<IRegex*>(&std_regex), static_cast<IRegex*>(&re2),
                        static_cast<IRegex*>(&pcre2)}) {
    ASSERT_EQ(regex->compile("\\p{L}+(?=\\s)"), Error::Ok);
    EXPECT_EQ(matches(*regex, "ab \xc3\xa9 c"), (Texts{"ab", "\xc3\xa9"}));
  }
}

TEST(TokenizerParts, PreTokenizers) {
  EXPECT_EQ(RegexPreTokenizer("\\w+").pre_tokenize("ab, c"), (Texts{"ab", "c"}));
  EXPECT_EQ(RegexPreTokenizer(",", true).pre_tokenize("ab, c"), (Texts{"ab", " c"}));
  EXPECT_EQ(RegexPreTokenizer(",", true, "MergedWithPrevious").pre_tokenize("ab, c"),
            (Texts{"ab,", " c"}));
  EXPECT_EQ(DigitsPreTokenizer(true).pre_tokenize("a12"), (Texts{"a", "1", "2"}));
  EXPECT_EQ(DigitsPreTokenizer().pre_tokenize("a12"), (Texts{"a", "12"}));
  EXPECT_EQ(ByteLevelPreTokenizer().pre_tokenize("ab c"), (Texts{"\xc4\xa0"
                                                                 "ab",
                                                                 "\xc4\xa0"
                                                                 "c"}));
  EXPECT_EQ(ByteLevelPreTokenizer(std::string("\\S+|\\s")).pre_tokenize("ab c"),
            (Texts{"\xc4\xa0", "ab", "\xc4\xa0", "c"}));
  const SequencePreTokenizer both(
      {std::make_shared<RegexPreTokenizer>("\\w+"), std::make_shared<DigitsPreTokenizer>(true)});
  EXPECT_EQ(both.pre_tokenize("a1 2"), (Texts{"a", "1", "2"}));
  PreTokenizerConfig config;
  config.parse_json(json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": true}]})"));
  ASSERT_NE(config.create(), nullptr);
  EXPECT_EQ(config.create()->pre_tokenize("a1 2"), (Texts{"a", "1", "2"}));
  EXPECT_EQ(PreTokenizerConfig("Sequence")
                .set_pretokenizers({PreTokenizerConfig("Digits").set_individual_digits(true)})
                .create()
                ->pre_tokenize("12"),
            (Texts{"1", "2"}));
  EXPECT_EQ(PreTokenizerConfig("Nothing").create(), nullptr);
}

TEST(TokenizerParts, SplitsWithoutABehavior) {
  const auto pieces = [](const char* text, const char* input) {
    PreTokenizerConfig config;
    return config.parse_json(json::parse(text)).create()->pre_tokenize(input);
  };
  EXPECT_EQ(pieces(R"({"type": "Split", "pattern": {"String": "+"}})", "a+b+c"),
            (Texts{"a", "b", "c"}));
  EXPECT_EQ(pieces(R"({"type": "Split", "pattern": {"Regex": "[a-z]+"}})", "ab cd"),
            (Texts{"ab", "cd"}));
  EXPECT_EQ(PreTokenizerConfig("Split").set_pattern("o").create()->pre_tokenize("foo"),
            (Texts{"o", "o"}));
  PreTokenizerConfig delimiter("Split");
  delimiter.set_pattern("o").set_is_delimiter(true);
  EXPECT_EQ(delimiter.create()->pre_tokenize("aob"), (Texts{"a", "b"}));
}

TEST(TokenizerParts, Normalizers) {
  EXPECT_EQ(ReplaceNormalizer("\\s+", "_").normalize("a  b"), "a_b");
  EXPECT_EQ(NFCNormalizer().normalize("e\xcc\x81"), "\xc3\xa9");
  const SequenceNormalizer both(
      {std::make_shared<PrependNormalizer>(">"), std::make_shared<ReplaceNormalizer>("a", "b")});
  EXPECT_EQ(both.normalize("a"), ">b");
  NormalizerConfig config;
  config.parse_json({{"type", "Lowercase"}});
  EXPECT_EQ(config.create()->normalize("AB"), "ab");
  EXPECT_EQ(NormalizerConfig("Sequence")
                .set_normalizers({NormalizerConfig("Prepend").set_prepend("x")})
                .create()
                ->normalize("a"),
            "xa");
  EXPECT_EQ(NormalizerConfig("Nothing").create(), nullptr);
}

TEST(TokenizerParts, Decoders) {
  EXPECT_EQ(ByteFallbackTokenDecoder().decode({"a", "<0x41>"}), (Texts{"a", "A"}));
  EXPECT_EQ(ReplaceTokenDecoder(".", " ").decode({"a.b"}), (Texts{"a b"}));
  EXPECT_EQ(StripTokenDecoder(" ", 1, 0).decode({"  a "}), (Texts{" a "}));
  const SequenceTokenDecoder both(
      {std::make_shared<ReplaceTokenDecoder>("_", " "), std::make_shared<FuseTokenDecoder>()});
  EXPECT_EQ(both.decode({"a_", "b"}), (Texts{"a b"}));
  TokenDecoderConfig config;
  config.parse_json(json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "}, {"type": "Fuse"}]})"));
  EXPECT_EQ(config.create()->decode({"a__", "b"}), (Texts{"a b"}));
  EXPECT_EQ(TokenDecoderConfig("Nothing").create(), nullptr);
}

TEST(TokenizerParts, PostProcessors) {
  PostProcessorConfig config;
  config.parse_json(json::parse(R"({"type": "Sequence", "processors": [
      {"type": "ByteLevel", "trim_offsets": false},
      {"type": "TemplateProcessing",
       "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                  {"Sequence": {"id": "A", "type_id": 0}}],
       "pair": [{"Sequence": {"id": "B", "type_id": 0}},
                {"SpecialToken": {"id": "<s>", "type_id": 1}},
                {"Sequence": {"id": "A", "type_id": 1}}],
       "special_tokens": {"<s>": {"id": "<s>", "ids": [7, 8], "tokens": ["<", "s>"]}}}]})"));
  const auto made = config.create();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->added_tokens(false), 2u);
  EXPECT_EQ(made->process({1, 2}), (Ids{7, 8, 1, 2}));
  EXPECT_EQ(made->process({1, 2}, false), (Ids{1, 2}));
  EXPECT_EQ(made->process({1, 2}, {3}, true), (Ids{3, 7, 8, 1, 2}));
  PostProcessorConfig bert;
  bert.parse_json(json::parse(R"({"type": "BertProcessing", "sep": ["S", 5], "cls": ["C", 4]})"));
  EXPECT_EQ(bert.create()->process({1}, {2}, true), (Ids{4, 1, 5, 2, 5}));
  bert.type = "RobertaProcessing";
  EXPECT_EQ(bert.create()->process({1}, {2}, true), (Ids{4, 1, 5, 5, 2, 5}));
  EXPECT_EQ(bert.create()->added_tokens(false), 2u);
  EXPECT_EQ(PostProcessorConfig("Nothing").create(), nullptr);
}

TEST(TokenizerParts, JsonThatIsMadeHereIsReadAsThatOfAFile) {
  PostProcessorConfig config;
  config.parse_json(
      json{{"type", "TemplateProcessing"},
           {"single", {"[CLS]", "$0", "[SEP]:1"}},
           {"pair", {"$A", "[SEP]", "$B:1"}},
           {"special_tokens", {{"[CLS]", {{"ids", {4}}}}, {"[SEP]", {{"ids", {5}}}}}}});
  EXPECT_EQ(config.single[2].type_id, 1u);
  EXPECT_EQ(config.create()->process({1, 2}), (Ids{4, 1, 2, 5}));
  EXPECT_EQ(config.create()->process({1}, {2}, true), (Ids{1, 5, 2}));
  PostProcessorConfig unnamed;
  unnamed.parse_json(json{{"type", "BertProcessing"}});
  EXPECT_EQ(unnamed.create()->process({1}), (Ids{1}));
  TokenDecoderConfig strip;
  strip.parse_json(json{{"type", "Strip"}, {"content", "_"}, {"start", 1}, {"stop", 0}});
  EXPECT_EQ(strip.create()->decode({"__a"}), (Texts{"_a"}));
}

TEST(TokenizerParts, FilesThatAreWrongSayHow) {
  Tiktoken tokenizer("\\w+", std::vector<std::string>{"<a>", "<b>"}, 0, 1);
  EXPECT_EQ(tokenizer.load_from_bytes("YQ== x\n"), Error::EncodeFailure);
  EXPECT_EQ(tokenizer.load_from_bytes("Y*== 0\n"), Error::Base64DecodeFailure);
  ASSERT_EQ(tokenizer.load_from_bytes("YQ== 0\n"), Error::Ok);
  EXPECT_EQ(tokenizer.decode(0, 9).error(), Error::DecodeFailure);
}

TEST(TokenizerParts, Llama2cFilesWithAHeaderMayBeSmall) {
  std::string file;
  const auto put = [&](auto value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const int32_t number : {4, 1, 2, 10}) put(number);
  for (const std::string piece : {"<unk>", "<s>", "</s>", " "}) {
    put(1.0f);
    put(static_cast<int32_t>(piece.size()));
    file += piece;
  }
  Llama2cTokenizer tokenizer;
  ASSERT_EQ(tokenizer.load_from_bytes(file), Error::Ok);
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.encode(" ", 0, 0).get(), (Ids{3, 3}));
  EXPECT_EQ(tokenizer.encode("a", 0, 0).error(), Error::EncodeFailure);
}
