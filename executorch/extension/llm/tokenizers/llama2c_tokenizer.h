#pragma once

#include <executorch/extension/llm/tokenizers/tokenizer.h>
#include <executorch/extension/llm/tokenizers/vocabulary.h>

#include <string>
#include <vector>

namespace tokenizers {

/// tokenizer.bin of llama2.c: pieces with scores, merged by score. The file has, little-endian,
/// int32 vocabulary size, first token, last token, longest piece (or the last number only), then
/// for each piece float32 score, int32 length, bytes.
class Llama2cTokenizer : public Tokenizer {
 public:
  explicit Llama2cTokenizer();
  ~Llama2cTokenizer() override;

  Error load(const std::string& tokenizer_path) override;
  Error load_from_bytes(std::string_view bytes) override;
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<uint64_t> piece_to_id(const std::string& text) const override;
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos,
                                       int8_t eos) const override;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;
  Result<std::string> token_bytes(uint64_t token) const override;
  bool is_special(uint64_t token) const override;

 private:
  bool parse(std::string_view bytes, bool has_header);

  std::vector<std::string> pieces_;
  std::vector<uint32_t> rank_;
  BytesMap tokens_;
};

}  // namespace tokenizers
