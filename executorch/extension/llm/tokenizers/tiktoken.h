#pragma once

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>

#include <memory>
#include <string>
#include <vector>

namespace tokenizers {

static constexpr int32_t kSpecialTokensSize = 256;
static constexpr size_t kBOSTokenIndex = 0;
static constexpr size_t kEOSTokenIndex = 1;

/// A file of lines "base64 rank". Special tokens follow the largest rank, in their order; the first
/// and the last token of a text are named by their places among them. Without arguments, a file
/// that is as large as GPT-2's, cl100k's, o200k's or Llama 3's is taken for that one; any other has
/// Llama 3's special tokens and pattern.
class Tiktoken : public detail::BPETokenizerBase {
 public:
  explicit Tiktoken(std::string pattern, std::unique_ptr<std::vector<std::string>> special_tokens,
                    size_t bos_token_index, size_t eos_token_index)
      : Tiktoken(std::move(pattern), special_tokens ? *special_tokens : std::vector<std::string>(),
                 bos_token_index, eos_token_index) {}
  explicit Tiktoken(std::string pattern, const std::vector<std::string>& special_tokens,
                    size_t bos_token_index, size_t eos_token_index)
      : pattern_(std::move(pattern)),
        special_tokens_(special_tokens),
        given_(true),
        bos_index_(bos_token_index),
        eos_index_(eos_token_index) {}
  explicit Tiktoken(const std::vector<std::string>& special_tokens, size_t bos_token_index,
                    size_t eos_token_index)
      : Tiktoken(std::string(), special_tokens, bos_token_index, eos_token_index) {}
  explicit Tiktoken(std::unique_ptr<std::vector<std::string>> special_tokens,
                    size_t bos_token_index, size_t eos_token_index)
      : Tiktoken(std::string(), std::move(special_tokens), bos_token_index, eos_token_index) {}
  explicit Tiktoken() {}

 protected:
  Error parse(std::string_view bytes) override;

 private:
  Error add_special_tokens(size_t largest);

  std::string pattern_;
  std::vector<std::string> special_tokens_;
  bool given_ = false;
  size_t bos_index_ = kBOSTokenIndex;
  size_t eos_index_ = kEOSTokenIndex;
};

}  // namespace tokenizers
