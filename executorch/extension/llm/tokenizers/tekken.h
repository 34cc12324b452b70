#pragma once

#include <executorch/extension/llm/tokenizers/bpe_tokenizer_base.h>

#include <optional>
#include <string>
#include <vector>

namespace tokenizers {

/// A tekken.json: special tokens from 0 on, then byte strings in order of their ranks.
class Tekken : public detail::BPETokenizerBase {
 public:
  struct TekkenConfig {
    std::string pattern;
    size_t num_vocab_tokens;
    size_t default_vocab_size;
    size_t default_num_special_tokens;
    std::string version;
  };
  struct TokenInfo {
    uint64_t rank;
    std::string token_bytes;
    std::optional<std::string> token_str;
  };
  struct SpecialTokenInfo {
    uint64_t rank;
    std::string token_str;
    bool is_control;
  };

  explicit Tekken() {}
  ~Tekken() override = default;

  /// Like load(), with these instead of the file's special tokens.
  Error load_with_special_tokens(const std::string& tokenizer_path,
                                 const std::vector<SpecialTokenInfo>& special_tokens) {
    given_ = special_tokens;
    return load(tokenizer_path);
  }
  const std::string& get_version() const { return version_; }

 protected:
  Error parse(std::string_view bytes) override;

 private:
  std::vector<SpecialTokenInfo> given_;
  std::string version_;
};

}  // namespace tokenizers
