#include <executorch/extension/llm/tokenizers/hf_tokenizer.h>

#include <gtest/gtest.h>

#include <string>

namespace tokenizers {
namespace {

/// A tokenizer.json with `n` times the same step in the sequence of that kind.
std::string repeated(const std::string& kind, const std::string& steps, const std::string& step,
                     int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += (i == 0 ? "" : ",") + step;
  return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]},")" + kind +
         R"(":{"type":"Sequence",")" + steps + "\":[" + all + "]}}";
}

Error encoded(const std::string& json) {
  HFTokenizer tokenizer;
  EXPECT_EQ(tokenizer.load_from_bytes(json), Error::Ok) << tokenizer.error_message();
  return tokenizer.encode("a b \xc3\xa9 a").error();
}

}  // namespace

TEST(HFTokenizer, TextThatDoublesWithEachStepIsAnError) {
  const std::string level = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
  const std::string twice = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
  EXPECT_EQ(encoded(repeated("pre_tokenizer", "pretokenizers", level, 2)), Error::Ok);
  EXPECT_EQ(encoded(repeated("pre_tokenizer", "pretokenizers", level, 60)), Error::EncodeFailure);
  EXPECT_EQ(encoded(repeated("normalizer", "normalizers", twice, 2)), Error::Ok);
  EXPECT_EQ(encoded(repeated("normalizer", "normalizers", twice, 60)), Error::EncodeFailure);
}

}  // namespace tokenizers
