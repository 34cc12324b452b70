#include <executorch/extension/llm/tokenizers/stream_decoder.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace tokenizers {
namespace {

/// Every byte is a token.
class Bytes : public Tokenizer {
 public:
  Error load(const std::string&) override { return Error::Ok; }
  Result<std::string> id_to_piece(uint64_t token) const override {
    if (token > 255) return Error::OutOfRange;
    return std::string(1, static_cast<char>(token));
  }
  Result<uint64_t> piece_to_id(const std::string& text) const override {
    return static_cast<uint64_t>(static_cast<uint8_t>(text[0]));
  }
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t, int8_t) const override {
    std::vector<uint64_t> tokens;
    for (const char c : input) tokens.push_back(static_cast<uint8_t>(c));
    return tokens;
  }
  Result<std::string> decode(uint64_t, uint64_t token, bool) const override {
    return id_to_piece(token);
  }
};

std::vector<std::string> stream(const std::string& bytes) {
  const Bytes tokenizer;
  StreamDecoder decoder(tokenizer, false);
  std::vector<std::string> pieces;
  for (const char c : bytes) pieces.push_back(*decoder.push(static_cast<uint8_t>(c)));
  pieces.push_back(decoder.finish());
  return pieces;
}

TEST(StreamDecoder, HoldsBackHalfACharacter) {
  EXPECT_EQ(stream("aé"), (std::vector<std::string>{"a", "", "é", ""}));
  EXPECT_EQ(stream("🙂"), (std::vector<std::string>{"", "", "", "🙂", ""}));
}

TEST(StreamDecoder, GoesOnInsideACharacterOfTheTextInFront) {
  const Bytes tokenizer;
  const std::string text = "aé🙂";
  for (size_t cut = 0; cut < text.size(); ++cut) {
    StreamDecoder decoder(tokenizer, false);
    std::vector<uint64_t> before;
    for (const char c : text.substr(0, cut)) before.push_back(static_cast<uint8_t>(c));
    decoder.follow(before);
    std::string shown;
    for (const char c : text.substr(cut)) shown += *decoder.push(static_cast<uint8_t>(c));
    shown += decoder.finish();
    EXPECT_EQ(shown, cut == 0 ? text : cut < 3 ? "é🙂" : "🙂") << cut;
  }
  StreamDecoder decoder(tokenizer, false);
  decoder.follow({0x80, 0x80, 0x80, 0x80, 0x80});
  EXPECT_EQ(*decoder.push('a'), "a");
}

/// Every byte is a token, and spaces at the beginning of a text are not shown.
class Trimmed : public Bytes {
 public:
  Result<std::string> decode_bytes(const std::vector<uint64_t>& tokens, bool) const override {
    const std::string text(tokens.begin(), tokens.end());
    return text.substr(std::min(text.find_first_not_of(' '), text.size()));
  }
};

TEST(StreamDecoder, KeepsSpacesBehindSpacesOfTheTextInFront) {
  const Trimmed tokenizer;
  StreamDecoder decoder(tokenizer, false);
  decoder.follow({'a', ' '});
  EXPECT_EQ(*decoder.push(' '), " ");
  EXPECT_EQ(*decoder.push('b'), "b");
}

TEST(StreamDecoder, ReplacesWhatCanNeverBecomeACharacter) {
  EXPECT_EQ(stream("\xe2\x82"), (std::vector<std::string>{"", "", "\ufffd"}));
  EXPECT_EQ(stream("\xffz"), (std::vector<std::string>{"\ufffd", "z", ""}));
  EXPECT_EQ(stream("\xe2z"), (std::vector<std::string>{"", "\ufffdz", ""}));
  EXPECT_EQ(stream("\xc0\x80"), (std::vector<std::string>{"\ufffd", "\ufffd", ""}));
}

TEST(StreamDecoder, Token0IsTextWhereNoTokenIsNamedSpecial) {
  Bytes tokenizer;
  EXPECT_EQ(*StreamDecoder(tokenizer).push(0), std::string(1, '\0'));
  tokenizer.set_eos_tok(7);
  EXPECT_EQ(*StreamDecoder(tokenizer).push(0), "");
  EXPECT_EQ(*StreamDecoder(tokenizer).push(7), "");
}

TEST(StreamDecoder, GivesTheErrorOfAnUnknownToken) {
  const Bytes tokenizer;
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(256).error(), Error::OutOfRange);
}

TEST(Utf8, RefusesOverlongFormsAndSurrogates) {
  for (const char* text :
       {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_FALSE(utf8::is_valid(text));
  }
  EXPECT_TRUE(utf8::is_valid("aé€🙂"));
  EXPECT_EQ(utf8::valid("a\xe2\x82z"), "a\ufffdz");
  std::string replaced;
  const std::string whole = "aé", broken = "a\xe2\x82z";
  EXPECT_EQ(utf8::valid(whole, replaced).data(), whole.data());
  EXPECT_EQ(utf8::valid(broken, replaced), "a\ufffdz");
}

}  // namespace
}  // namespace tokenizers
