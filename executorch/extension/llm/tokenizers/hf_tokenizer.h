#pragma once

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tokenizers {

/// A tokenizer.json: added tokens, normalizer, pre-tokenizer, model, post-processor and decoder as
/// the file describes them. Its truncation and padding are left to the caller.
class HFTokenizer : public detail::BPETokenizerBase {
 public:
  explicit HFTokenizer();
  ~HFTokenizer() override;

  /// `bos` and `eos` add what the post-processor puts before and behind a text, or, where it puts
  /// nothing there, the first and the last token.
  Result<std::vector<uint64_t>> encode(const std::string& input, int8_t bos = 0,
                                       int8_t eos = 0) const override;
  Result<std::string> id_to_piece(uint64_t token) const override;
  Result<std::string> decode(uint64_t prev_token, uint64_t token,
                             bool skip_special_tokens = false) const override;
  Result<std::string> decode(const std::vector<uint64_t>& tokens,
                             bool skip_special_tokens = false) const;
  Result<std::string> decode_bytes(const std::vector<uint64_t>& tokens,
                                   bool skip_special_tokens = false) const override;
  bool decodes_by_pairs() const override;
  Result<std::string> token_bytes(uint64_t token) const override;

 protected:
  Error parse(std::string_view bytes) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tokenizers
